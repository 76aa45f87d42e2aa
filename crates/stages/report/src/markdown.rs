//! Tables as Markdown.

use std::fmt::Write;

use crate::table::Table;
use crate::text::plain;

/// Tables as GitHub's Markdown; what cells say is text in it, whatever it looks like.
pub fn markdown(title: &str, tables: &[Table]) -> String {
    let mut text = format!("# {}\n", literal(title));
    for table in tables {
        let _ = write!(text, "\n## {}\n\n", literal(&table.title));
        line(&mut text, table.columns.iter().map(|column| literal(column.name)));
        line(
            &mut text,
            table.columns.iter().map(|column| if column.right { "---:" } else { "---" }.to_owned()),
        );
        for row in &table.rows {
            line(&mut text, row.iter().map(|cell| literal(cell)));
        }
        for note in &table.notes {
            let _ = write!(text, "\n{}\n", literal(note));
        }
    }
    text
}

fn line(text: &mut String, cells: impl Iterator<Item = String>) {
    let cells: Vec<String> = cells.collect();
    let _ = writeln!(text, "| {} |", cells.join(" | "));
}

/// A text that Markdown shows as it is: no markup, no table's end, no tag, no mention, no link of itself.
fn literal(text: &str) -> String {
    let mut shown = String::new();
    for c in plain(text).chars() {
        match c {
            '<' => shown.push_str("&lt;"),
            '>' => shown.push_str("&gt;"),
            '&' => shown.push_str("&amp;"),
            '@' => shown.push_str("&#64;"),
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '#' | '|' | '~' | '!' | '$' => {
                shown.extend(['\\', c])
            }
            c => shown.push(c),
        }
    }
    shown.replace("://", "&#58;//").replace("www.", "www&#46;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_patch_says_is_text_and_ends_no_cell() {
        let said = "a | b <img src=x> **x** [y](https://z) @ada\n\u{1b}[2J\u{202e}x";
        assert_eq!(
            literal(said),
            "a \\| b &lt;img src=x&gt; \\*\\*x\\*\\* \\[y\\](https&#58;//z) &#64;ada \\\\u\\{1b\\}\\[2J\\\\u\\{202e\\}x"
        );
        let mut table = Table::new("t", "T", &["a", ">b"]);
        table.rows.push(vec!["x|y".into(), "1\n2".into()]);
        assert_eq!(markdown("R", &[table]), "# R\n\n## T\n\n| a | b |\n| --- | ---: |\n| x\\|y | 1 2 |\n");
    }
}
