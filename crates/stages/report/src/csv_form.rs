//! A table as CSV.

use crate::table::Table;
use crate::text::plain;

/// A table as CSV (RFC 4180) with a header. A cell that a spreadsheet would take for a formula begins with an apostrophe.
///
/// # Errors
/// None that a table in memory can cause; the writer's own, in its words.
pub fn csv(table: &Table) -> Result<Vec<u8>, String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut record = |cells: Vec<String>| writer.write_record(cells).map_err(|error| error.to_string());
    record(headers(table))?;
    for row in &table.rows {
        record(row.iter().map(|cell| inert(cell)).collect())?;
    }
    writer.into_inner().map_err(|error| error.to_string())
}

/// Names of columns, each once.
fn headers(table: &Table) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (at, column) in table.columns.iter().enumerate() {
        let taken = table.columns.iter().filter(|other| other.name == column.name).count() > 1;
        let before = at.checked_sub(1).map_or("", |before| table.columns[before].name);
        names.push(if taken { format!("{} {before}", column.name) } else { column.name.to_owned() });
    }
    names
}

fn inert(cell: &str) -> String {
    let shown = plain(cell);
    let is_number = shown.parse::<f64>().is_ok();
    match shown.chars().next() {
        Some('=' | '+' | '-' | '@') if !is_number => format!("'{shown}"),
        _ => shown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_and_no_spreadsheet_runs_them() {
        let mut table = Table::new("t", "T", &["a", ">b", "share", ">c", "share"]);
        table.rows.push(["=1+1", "-3", "a \"b\", c", "+x", "é"].map(String::from).to_vec());
        assert_eq!(
            String::from_utf8(csv(&table).unwrap()).unwrap(),
            "a,b,share b,c,share c\n'=1+1,-3,\"a \"\"b\"\", c\",'+x,é\n"
        );
    }
}
