//! Names that a text knows as attributes.

/// Names that stand after a dot, after `def`, or at the beginning of an indented line before a colon (annotated fields). By the
/// text alone: comments and strings count too.
pub fn attribute_names(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| {
        let mut before = "";
        words(line).filter_map(move |(at, word)| {
            let ahead = line[..at].trim_end();
            let indented_first = ahead.is_empty() && at > 0;
            let annotates = || line[at + word.len()..].trim_start().starts_with(':');
            let found = ahead.ends_with('.') || before == "def" || (indented_first && annotates());
            before = word;
            found.then_some(word)
        })
    })
}

/// Words of a line, each with the byte where it begins.
fn words(line: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    line.split(|c: char| !c.is_alphanumeric() && c != '_').filter_map(move |word| {
        let start = at;
        // Whatever parts words, it is one character.
        at += word.len() + line[start + word.len()..].chars().next().map_or(0, char::len_utf8);
        (!word.is_empty()).then_some((start, word))
    })
}

#[cfg(test)]
mod tests {
    use super::attribute_names;

    #[test]
    fn attributes_methods_and_annotated_fields_are_known_and_variables_are_not() {
        let text = "é = 1\nrefs = a.b . c\nclass A:\n    field: int = 2\n    def go(self, x: int):\n        y = x\n        self.kept = y\n";
        let found: Vec<&str> = attribute_names(text).collect();
        assert_eq!(found, ["b", "c", "field", "go", "kept"]);
    }
}
