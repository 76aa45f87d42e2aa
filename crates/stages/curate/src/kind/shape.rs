//! What the shape of a change says of its kind.

use infradev_model::Kind;

use super::Made;
use crate::words::{Votes, evidence};

/// A fix with a test of its own adds few lines of code.
const SMALL: u32 = 40;

/// So few lines put something right, whatever else they are.
const FEW: u32 = 12;

/// So many lines are something new.
const MUCH: u32 = 150;

/// Reads the shape of a change. Where its author calls it a refactoring, new names are what it was taken apart into.
pub fn shape(made: &Made, refactoring: bool, votes: &mut Votes<Kind>) {
    let d = &made.definitions;
    let mut vote = |kind, weight, what: String| votes.add(kind, weight, evidence(what, "source"));
    let new = d.public_added + d.settings;
    if d.public_added > 0 || d.settings > 0 {
        let weight = if d.settings > 0 && d.public_added > 0 || new >= 3 { 2.0 } else { 1.0 };
        let weight = if refactoring { weight - 1.0 } else { weight };
        if weight > 0.0 {
            let what = format!("{} public names and {} settings added", d.public_added, d.settings);
            vote(Kind::Feature, weight, what);
        }
    } else if made.tests_added > 0 && (1..=6).contains(&d.functions_changed) && made.substance.added <= SMALL
    {
        vote(
            Kind::Fix,
            2.0,
            format!("only bodies of {} functions changed, with a test", d.functions_changed),
        );
    } else if d.functions_changed <= 3 {
        vote(Kind::Fix, 1.0, format!("only bodies of {} functions changed", d.functions_changed));
    } else {
        vote(Kind::Refactor, 1.0, format!("{} functions changed, nothing public added", d.functions_changed));
    }
    if made.substance.added <= FEW && new <= 1 {
        vote(Kind::Fix, 0.75, format!("{} lines", made.substance.added));
    }
    if made.substance.added >= MUCH {
        vote(Kind::Feature, 0.75, format!("{} lines added", made.substance.added));
    }
    if made.tests_added == 0 && d.functions_changed >= 4 {
        vote(Kind::Refactor, 0.75, format!("{} functions changed, no test added", d.functions_changed));
    }
    let carried = d.moved + d.renamed;
    if carried >= 2 && carried * 2 >= d.functions_added + d.classes_added {
        // The more is carried, the less of the rest is what the change is about.
        let weight = (2.0 + f64::from(carried) / 8.0).min(5.0);
        vote(Kind::Refactor, weight, format!("{} definitions moved, {} renamed", d.moved, d.renamed));
    }
    if d.removed > 0 && made.substance.deleted > made.substance.added {
        let (gone, come) = (made.substance.deleted, made.substance.added);
        vote(Kind::Refactor, 1.5, format!("{} definitions removed, {gone} lines for {come}", d.removed));
    }
    if made.substance.files >= 8 && made.substance.added < 12 * made.substance.files && d.public_added <= 2 {
        let weight = if made.substance.files >= 16 { 2.0 } else { 1.0 };
        vote(Kind::Refactor, weight, format!("a little of each of {} files", made.substance.files));
    }
    if made.measured {
        vote(Kind::Performance, 0.5, "tests look at memory, time or bytes".into());
    }
}
