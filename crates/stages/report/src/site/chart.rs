//! Figures: bars with their intervals as inline SVG, each with a text alternative and its numbers as a table.

use askama::Template;
use infradev_model::{Analysis, ClassCount, Figures, Grouping, Proportion};

use super::reading_charts;
use crate::table::Table;
use crate::text::{counts, estimate, percent};

/// A share of a bar's whole width, in the order in which they are drawn.
struct Part {
    class: &'static str,
    x: f64,
    width: f64,
}

struct Bar {
    label: String,
    value: String,
    /// Baselines of the two, and the bar's upper edge.
    label_y: u32,
    value_y: u32,
    y: u32,
    parts: Vec<Part>,
    /// Ends of the interval.
    range: Option<(f64, f64)>,
}

/// What a colour stands for.
pub(crate) struct Key {
    pub class: &'static str,
    pub word: &'static str,
}

/// A figure.
#[derive(Template)]
#[template(path = "site/chart.html")]
pub(crate) struct Chart {
    id: &'static str,
    title: String,
    describe: String,
    pub(crate) keys: Vec<Key>,
    bars: Vec<Bar>,
    height: u32,
    axis: u32,
    ticks: Vec<(f64, String)>,
    table: Table,
}

/// Where bars begin, and how wide a share of 1 is. A figure of this width is read on a phone as it is: words stand above their bar.
const LEFT: f64 = 14.0;
const WIDTH: f64 = 330.0;
/// Heights: of a label's line, of a value's, of a bar, of what is below it.
const LABEL_LINE: u32 = 18;
const VALUE_LINE: u32 = 17;
const THICK: u32 = 12;
const BELOW: u32 = 7;
/// Bars of a figure; the table beside it has all.
const BARS: usize = 40;

fn at(share: f64) -> f64 {
    ((LEFT + share.clamp(0.0, 1.0) * WIDTH) * 10.0).round() / 10.0
}

/// Characters of a label above its bar.
const LABEL: usize = 48;

/// What tells two arms or repositories apart stands at both ends of their names.
fn shortened(label: &str) -> String {
    let all: Vec<char> = label.chars().collect();
    if all.len() <= LABEL {
        return label.to_owned();
    }
    let (start, end) = (&all[..LABEL / 2], &all[all.len() - LABEL / 2..]);
    start.iter().chain(&['…']).chain(end).collect()
}

impl Chart {
    /// Its anchor.
    pub fn id(&self) -> &'static str {
        self.id
    }

    /// Its caption.
    pub fn title(&self) -> &str {
        &self.title
    }

    pub(crate) fn new(id: &'static str, title: &str, columns: &[&'static str]) -> Chart {
        Chart {
            id,
            title: title.to_owned(),
            describe: String::new(),
            keys: Vec::new(),
            bars: Vec::new(),
            height: 0,
            axis: 0,
            ticks: Vec::new(),
            table: Table::new("figure", title, columns),
        }
    }

    /// A row of the table beside it.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.table.rows.push(cells);
    }

    pub(crate) fn bar(
        &mut self,
        label: String,
        value: String,
        parts: &[(&'static str, f64)],
        range: Option<(f64, f64)>,
    ) {
        let mut x = LEFT;
        let mut drawn = Vec::new();
        for (class, share) in parts {
            let width = (share.clamp(0.0, 1.0) * WIDTH * 10.0).round() / 10.0;
            drawn.push(Part { class, x, width });
            x += width;
        }
        let range = range.map(|(low, high)| (at(low), at(high)));
        let (label, parts) = (shortened(&label), drawn);
        self.bars.push(Bar { label, value, label_y: 0, value_y: 0, y: 0, parts, range });
    }

    /// The figure, where it has a bar.
    pub(crate) fn done(mut self) -> Option<Chart> {
        if self.bars.is_empty() {
            return None;
        }
        let left = self.bars.len().saturating_sub(BARS);
        self.bars.truncate(BARS);
        let mut told = String::new();
        for bar in &self.bars {
            let between = if told.is_empty() { "" } else { "; " };
            let name = if bar.label.is_empty() { String::new() } else { format!("{}: ", bar.label) };
            told.push_str(&format!("{between}{name}{}", bar.value));
        }
        self.describe = told;
        if left > 0 {
            self.describe.push_str(&format!("; and {left} more in the table"));
        }
        self.axis = self.lay();
        self.height = self.axis + 22;
        self.ticks = (0..=4_u8).map(|quarter| f64::from(quarter) / 4.0).map(tick).collect();
        Some(self)
    }
}

impl Chart {
    /// Gives each bar its place; the lower end of all.
    fn lay(&mut self) -> u32 {
        let mut y = 2;
        for bar in &mut self.bars {
            if !bar.label.is_empty() {
                bar.label_y = y + 13;
                y += LABEL_LINE;
            }
            bar.value_y = y + 12;
            bar.y = y + VALUE_LINE;
            y = bar.y + THICK + BELOW;
        }
        y
    }
}

fn tick(share: f64) -> (f64, String) {
    (at(share), format!("{:.0} %", share * 100.0))
}

pub(crate) fn value(share: Proportion) -> f64 {
    if share.of == 0 { 0.0 } else { f64::from(share.count) / f64::from(share.of) }
}

/// The figures that have a bar.
pub(crate) fn charts(analysis: &Analysis) -> Vec<Chart> {
    let figures = &analysis.figures;
    let all = [
        rates(figures, Grouping::Arm, "resolved-by-arm", "Resolved by arm, with probes and without"),
        rates(figures, Grouping::Area, "resolved-by-area", "Resolved by area, with probes and without"),
        rates(figures, Grouping::Repository, "resolved-by-repository", "Resolved by repository"),
        rates(
            figures,
            Grouping::ArmRepository,
            "resolved-by-arm-and-repository",
            "Resolved by arm and repository",
        ),
        pass_at_k(figures),
        classes(figures),
        suites(figures),
        reading_charts::traits(figures),
        reading_charts::own_tests(figures),
    ];
    all.into_iter().flatten().collect()
}

fn rates(figures: &Figures, by: Grouping, id: &'static str, title: &str) -> Option<Chart> {
    let columns =
        ["group", ">with probes", "share", ">official only", "share", ">rejected by probes", "share"];
    let mut chart = Chart::new(id, title, &columns);
    chart.keys =
        vec![Key { class: "one", word: "with probes" }, Key { class: "two", word: "official tests alone" }];
    for rate in figures.rates.iter().filter(|rate| rate.by == by && rate.resolved.of > 0) {
        for (class, what, share) in
            [("one", "with probes", rate.resolved), ("two", "official only", rate.official)]
        {
            let label = if class == "one" { rate.group.clone() } else { String::new() };
            let value_text = format!("{what} {} = {}", counts(share), percent(share));
            chart.bar(label, value_text, &[(class, value(share))], Some((share.low, share.high)));
        }
        let shares = [rate.resolved, rate.official, rate.rejected];
        let cells = shares.into_iter().flat_map(|share| [counts(share), percent(share)]);
        chart.table.rows.push(std::iter::once(rate.group.clone()).chain(cells).collect());
    }
    chart.done()
}

fn pass_at_k(figures: &Figures) -> Option<Chart> {
    let mut chart = Chart::new("pass-at-k", "pass@k by arm", &["arm", ">k", ">tasks", "estimate"]);
    chart.keys = vec![Key { class: "one", word: "mean over tasks" }];
    for row in &figures.pass_at_k {
        let found = row.estimate;
        let text = format!("{} (tasks: {})", estimate(found), found.tasks);
        let label = format!("k = {}, {}", row.k, row.arm);
        chart.bar(label, text.clone(), &[("one", found.value)], Some((found.low, found.high)));
        let cells = [row.arm.clone(), row.k.to_string(), found.tasks.to_string(), estimate(found)];
        chart.table.rows.push(cells.to_vec());
    }
    chart.done()
}

fn classes(figures: &Figures) -> Option<Chart> {
    let columns = ["class", ">submissions", "share", ">cases"];
    let mut chart = Chart::new("error-classes", "Error classes, of the scored submissions", &columns);
    chart.keys = vec![Key { class: "one", word: "submissions with such an error" }];
    for row in &figures.classes {
        let share = row.submissions;
        let text = format!("{} = {}", counts(share), percent(share));
        chart.bar(row.class.word().to_owned(), text, &[("one", value(share))], Some((share.low, share.high)));
        let cells = [row.class.word().to_owned(), counts(share), percent(share), row.cases.to_string()];
        chart.table.rows.push(cells.to_vec());
    }
    chart.done()
}

fn suites(figures: &Figures) -> Option<Chart> {
    let columns = ["class", ">official only", ">both", ">probes only"];
    let mut chart = Chart::new("suites", "Which suite caught the errors, by class", &columns);
    chart.keys = vec![
        Key { class: "two", word: "official tests only" },
        Key { class: "three", word: "both" },
        Key { class: "one", word: "probes only" },
    ];
    for row in figures.classes.iter().filter(|row| caught(row) > 0) {
        let of = f64::from(caught(row));
        let parts = [("two", row.official_only), ("three", row.both), ("one", row.probe_only)];
        let text =
            format!("official only {}, both {}, probes only {}", row.official_only, row.both, row.probe_only);
        let parts = parts.map(|(class, count)| (class, f64::from(count) / of));
        chart.bar(row.class.word().to_owned(), text, &parts, None);
        let numbers = [row.official_only, row.both, row.probe_only].map(|count| count.to_string());
        chart.table.rows.push(std::iter::once(row.class.word().to_owned()).chain(numbers).collect());
    }
    chart.done()
}

fn caught(row: &ClassCount) -> u32 {
    row.official_only + row.probe_only + row.both
}
