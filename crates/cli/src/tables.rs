//! Tables that a person can read.

use std::fmt::Write;

use anstyle::{AnsiColor, Style};

use crate::report::visible;

/// Text with the colour that it has on a terminal.
#[derive(Debug, Clone, Default)]
pub struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    fn styled(text: impl Into<String>, style: Style) -> Cell {
        Cell { text: visible(&text.into()).into_owned(), style }
    }

    /// Good news.
    pub fn good(text: impl Into<String>) -> Cell {
        Cell::styled(text, AnsiColor::Green.on_default())
    }

    /// Bad news.
    pub fn bad(text: impl Into<String>) -> Cell {
        Cell::styled(text, AnsiColor::Red.on_default())
    }

    /// News that need a look.
    pub fn odd(text: impl Into<String>) -> Cell {
        Cell::styled(text, AnsiColor::Yellow.on_default())
    }

    /// Good where it holds.
    pub fn either(holds: bool, yes: &str, no: &str) -> Cell {
        if holds { Cell::good(yes) } else { Cell::bad(no) }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Cell {
        Cell::styled(text, Style::new())
    }
}

/// Rows under a header; columns as wide as their widest cell.
pub struct Table {
    header: Vec<&'static str>,
    /// Columns of numbers.
    right: Vec<usize>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table; `right` names columns set flush right.
    pub fn new(header: &[&'static str], right: &[usize]) -> Table {
        Table { header: header.to_vec(), right: right.to_vec(), rows: Vec::new() }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// All of it; styled, and plain once it goes through a stream that takes no colour.
    pub fn text(&self) -> String {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            let widest = cells.map(|cell| cell.text.chars().count()).max().unwrap_or(0);
            widest.max(self.header[column].chars().count())
        };
        let widths: Vec<usize> = (0..self.header.len()).map(width).collect();
        let bold = Style::new().bold();
        let header = self.header.iter().map(|word| Cell { text: (*word).to_string(), style: bold }).collect();
        let mut text = String::new();
        for row in std::iter::once(&header).chain(&self.rows) {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                let gap = " ".repeat(widths[column].saturating_sub(cell.text.chars().count()));
                let (before, after) = match (self.right.contains(&column), column + 1 < row.len()) {
                    (true, _) => (gap.as_str(), ""),
                    (false, true) => ("", gap.as_str()),
                    (false, false) => ("", ""),
                };
                let style = if cell.text.is_empty() { Style::new() } else { cell.style };
                let _ = write!(line, "{before}{style}{}{style:#}{after}  ", cell.text);
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// A text cut to so many characters, on one line.
pub fn short(text: &str, most: usize) -> String {
    let line = text.lines().next().unwrap_or_default();
    if line.chars().count() <= most {
        return line.to_string();
    }
    line.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// A text cut to so many characters in its middle, so that what tells it from others at either end is kept.
pub fn middle(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        return text.to_string();
    }
    let (before, after) = (most / 2, (most - 1) / 2);
    text.chars().take(before).chain(['…']).chain(text.chars().skip(count - after)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_whatever_their_colours() {
        let mut table = Table::new(&["task", "passed"], &[1]);
        table.row(vec!["a".into(), "3/10".into()]);
        table.row(vec![Cell::good("longer"), Cell::bad("10/10")]);
        let plain = anstream::adapter::strip_str(&table.text()).to_string();
        assert_eq!(plain, "task    passed\na         3/10\nlonger   10/10\n");
    }

    #[test]
    fn a_long_text_is_cut_with_an_ellipsis() {
        assert_eq!(short("abcdef\nx", 4), "abc…");
        assert_eq!(short("abcd", 4), "abcd");
        assert_eq!(middle("abcdefgh", 5), "ab…gh");
        assert_eq!(middle("abcdefgh", 6), "abc…gh");
        assert_eq!(middle("äbcd", 4), "äbcd");
    }
}
