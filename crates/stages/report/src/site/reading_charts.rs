//! Figures of what was read of tasks' traits and of submissions' own tests.

use infradev_model::{Figures, Property, TraitOf};

use super::chart::{Chart, Key, value};
use crate::text::{counts, percent};

/// Conditional errors by trait of the task: those with it above those without.
pub(crate) fn traits(figures: &Figures) -> Option<Chart> {
    let columns = ["trait", ">with it", "share", ">without", "share"];
    let mut chart = Chart::new("conditional-errors", "Conditional errors by trait of the task", &columns);
    chart.keys =
        vec![Key { class: "one", word: "tasks with the trait" }, Key { class: "two", word: "all others" }];
    for row in figures.traits.iter().filter(|row| row.of == TraitOf::Task && row.with.of > 0) {
        for (class, what, share) in [("one", "with it", row.with), ("two", "without", row.without)] {
            let label = if class == "one" { row.name.clone() } else { String::new() };
            let said = format!("{what} {} = {}", counts(share), percent(share));
            chart.bar(label, said, &[(class, value(share))], Some((share.low, share.high)));
        }
        let shares = [row.with, row.without].into_iter().flat_map(|share| [counts(share), percent(share)]);
        chart.row(std::iter::once(row.name.clone()).chain(shares).collect());
    }
    chart.done()
}

/// What the own tests of each arm's submissions check: shares of all assertions.
pub(crate) fn own_tests(figures: &Figures) -> Option<Chart> {
    let columns = ["arm", ">assertions", ">values", ">other", ">memory, time, traffic", "share"];
    let mut chart = Chart::new("own-tests", "What submissions' own tests check", &columns);
    chart.keys = vec![
        Key { class: "two", word: "values" },
        Key { class: "three", word: "shapes, exceptions, state, conditions" },
        Key { class: "one", word: "memory, time, traffic" },
    ];
    for row in figures.own_tests.iter().filter(|row| row.resources.of > 0) {
        let of = row.resources.of;
        let values = row.counts.get(&Property::Value).copied().unwrap_or(0);
        let values = u32::try_from(values).unwrap_or(u32::MAX);
        let other = of.saturating_sub(values).saturating_sub(row.resources.count);
        let parts = [("two", values), ("three", other), ("one", row.resources.count)];
        let parts = parts.map(|(class, count)| (class, f64::from(count) / f64::from(of)));
        let said = format!("{} check a resource = {}", counts(row.resources), percent(row.resources));
        chart.bar(row.arm.clone(), said, &parts, None);
        let numbers = [of, values, other].map(|count| count.to_string());
        let resources = [counts(row.resources), percent(row.resources)];
        chart.row(std::iter::once(row.arm.clone()).chain(numbers).chain(resources).collect());
    }
    chart.done()
}
