//! Agreement of rules and labels.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use infradev_model::Property;

/// One label with what the rules say.
pub struct Pair {
    /// Where, for people.
    pub at: String,
    pub label: Property,
    pub found: Option<Property>,
}

/// Pairs of one set.
#[derive(Default)]
pub struct Agreement(pub Vec<Pair>);

impl Agreement {
    /// The share of pairs that agree.
    pub fn observed(&self) -> f64 {
        self.0.iter().filter(|pair| pair.found == Some(pair.label)).count() as f64 / self.0.len() as f64
    }

    /// Cohen's kappa: agreement beyond the one that both margins give by chance.
    pub fn kappa(&self) -> f64 {
        let all = self.0.len() as f64;
        let mut margins: BTreeMap<Option<Property>, (f64, f64)> = BTreeMap::new();
        for pair in &self.0 {
            margins.entry(Some(pair.label)).or_default().0 += 1.0;
            margins.entry(pair.found).or_default().1 += 1.0;
        }
        let chance: f64 = margins.values().map(|(label, found)| label * found / (all * all)).sum();
        (self.observed() - chance) / (1.0 - chance)
    }

    /// A line for a set, then those that differ.
    pub fn shown(&self, name: &str) -> String {
        let (right, all) =
            (self.0.iter().filter(|pair| pair.found == Some(pair.label)).count(), self.0.len());
        let mut text = format!("{name}: kappa {:.3}, {right} of {all} agree\n", self.kappa());
        for pair in self.0.iter().filter(|pair| pair.found != Some(pair.label)) {
            let found = pair.found.map_or("absent", Property::word);
            writeln!(text, "  {}: read as {}, by rule {found}", pair.at, pair.label).unwrap();
        }
        text
    }

    /// Precision and recall of each label.
    pub fn by_label(&self) -> String {
        let mut text = String::new();
        for property in Property::ALL {
            let labelled = self.0.iter().filter(|pair| pair.label == property).count();
            let found = self.0.iter().filter(|pair| pair.found == Some(property)).count();
            let both = self.0.iter().filter(|p| p.label == property && p.found == Some(property)).count();
            writeln!(text, "  {property:<15} {both} of {labelled} found, {both} of {found} right").unwrap();
        }
        text
    }
}
