//! Tables of what was read of patches and trajectories.

use infradev_model::{Figures, OwnTestCount, Property};

use crate::table::Table;
use crate::text::{counts, percent};

pub(crate) fn likeness(figures: &Figures) -> Table {
    let columns = [
        "arm",
        ">submissions",
        ">golden's lines, median",
        ">most",
        ">shingles, median",
        ">files precision",
        ">files recall",
    ];
    let mut table = Table::new("likeness", "How close patches are to golden", &columns);
    for row in &figures.likeness {
        let known = [row.shingles, row.precision, row.recall].map(Some);
        let mut cells = vec![row.arm.clone(), row.submissions.to_string()];
        let shares = [row.lines, row.most_lines].into_iter().chain(known);
        cells.extend(shares.map(|share| share.map_or("–".to_owned(), |share| format!("{share:.2}"))));
        table.rows.push(cells);
    }
    table.notes.push(
        "of the lines that golden adds, those that a patch adds too; runs of 5 tokens that both have of those that either has; files \
         that both change of the patch's, and of golden's; tests apart. A patch with most of golden's lines may have been learnt"
            .to_owned(),
    );
    table
}

/// The order of columns: what the paper's figure 6 shows, resources last.
const PROPERTIES: [Property; 9] = [
    Property::Value,
    Property::ShapeOrDtype,
    Property::Exception,
    Property::State,
    Property::Condition,
    Property::None,
    Property::Memory,
    Property::Time,
    Property::Traffic,
];

pub(crate) fn own_tests(figures: &Figures) -> Table {
    let columns = [
        "arm",
        ">submissions",
        ">with tests",
        ">value",
        ">shape or dtype",
        ">exception",
        ">state",
        ">condition",
        ">none",
        ">memory",
        ">time",
        ">traffic",
        ">check a resource",
        "share",
    ];
    let mut table = Table::new("own-tests", "What submissions' own tests check, in assertions", &columns);
    let row = |row: &OwnTestCount| {
        let mut cells = vec![row.arm.clone(), row.submissions.to_string(), row.with_tests.to_string()];
        let count = |property: Property| row.counts.get(&property).copied().unwrap_or(0).to_string();
        cells.extend(PROPERTIES.map(count));
        cells.extend([counts(row.resources), percent(row.resources)]);
        cells
    };
    // Where nobody wrote a test there is nothing to show.
    if figures.own_tests.iter().any(|row| row.with_tests > 0) {
        table.rows.extend(figures.own_tests.iter().map(row));
    }
    table.notes.push(
        "of each submission those that its agent wrote on its way or those that its patch adds, whichever are more".to_owned(),
    );
    table
}

pub(crate) fn resource_checks(figures: &Figures) -> Table {
    let columns = ["submissions", ">check a resource", "share"];
    let mut table =
        Table::new("resource-checks", "Failed resource checks, and who checked a resource", &columns);
    if let Some(found) = figures.resource_checks.as_ref().filter(|found| found.failed.of > 0) {
        for (name, share) in [("fail a resource check", found.failed), ("fail none", found.others)] {
            table.rows.push(vec![name.to_owned(), counts(share), percent(share)]);
        }
    }
    table.notes.push("of the scored submissions whose own tests were read".to_owned());
    table
}

pub(crate) fn tried(figures: &Figures) -> Table {
    let columns = ["arm", "gate", ">passed by its agent", "share", ">tokens, median", ">seconds, median"];
    let mut table = Table::new("tried", "How far agents tried their work", &columns);
    for row in &figures.tried {
        let whole = |number: Option<f64>| number.map_or("–".to_owned(), |number| format!("{number:.0}"));
        table.rows.push(vec![
            row.arm.clone(),
            row.gate.word().to_owned(),
            counts(row.reached),
            percent(row.reached),
            whole(row.tokens),
            whole(row.seconds),
        ]);
    }
    table.notes.push(
        "by the commands of trajectories and what came back: the first import, collection, test run in one process, and under a launcher \
         of several, that nothing calls failed; tokens and seconds up to it"
            .to_owned(),
    );
    table
}
