//! A table of texts, whatever form it is shown in.

/// A column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Its word.
    pub name: &'static str,
    /// Whether it is set flush right.
    pub right: bool,
}

/// Rows under columns. Cells are as they were recorded: each form escapes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// A file's stem.
    pub name: &'static str,
    /// Above it.
    pub title: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its rows, each with a cell a column.
    pub rows: Vec<Vec<String>>,
    /// Below it, a sentence each.
    pub notes: Vec<String>,
}

impl Table {
    /// An empty table. A column whose word begins with `>` is set flush right.
    pub(crate) fn new(name: &'static str, title: &str, columns: &[&'static str]) -> Table {
        let column = |word: &&'static str| match word.strip_prefix('>') {
            Some(name) => Column { name, right: true },
            None => Column { name: word, right: false },
        };
        Table {
            name,
            title: title.to_owned(),
            columns: columns.iter().map(column).collect(),
            rows: Vec::new(),
            notes: Vec::new(),
        }
    }
}
