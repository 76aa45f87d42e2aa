//! Signatures of errors: what stays the same where the same goes wrong again, in another run, on another rank, on other data.

use std::sync::LazyLock;

use regex::Regex;

/// Characters of a signature's message.
const LONGEST: usize = 160;

/// What is different each time, and what stands for it. In this order: a path may hold a hash, a size a number.
static VARYING: LazyLock<Vec<(Regex, &'static str)>> = LazyLock::new(|| {
    [
        (r"\x1b\[[0-9;?]*[ -/]*[@-~]", ""),
        (r"\b0[xX][0-9a-fA-F]+\b", "<address>"),
        (r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b", "<id>"),
        (r"(?:\b[A-Za-z]:)?(?:/[\w.@+~-]+){2,}/?", "<path>"),
        (r"\btmp[0-9a-z_]{4,}\b", "<temporary>"),
        (r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)?", "<time>"),
        (r"\b\d+:\d\d:\d\d(?:[.,]\d+)?\b", "<time>"),
        (r"\b\d+(?:\.\d+)?(?:e[-+]?\d+)? ?(?:[kKMGT]i?B|bytes?|B)\b", "<size>"),
        (r"\b\d+(?:\.\d+)?(?:e[-+]?\d+)? ?(?:ns|us|µs|ms|s|sec|seconds?|minutes?)\b", "<time>"),
        (r"\b([Rr]anks?)[ =:#]*\d+(?:(?:, | and )\d+)*", "$1 <n>"),
        (r"\b(cuda|cpu|xpu):\d+", "$1:<n>"),
        (r"\b[0-9a-f]*(?:[0-9][a-f]|[a-f][0-9])[0-9a-f]{6,}\b", "<hash>"),
        (r"\b\d+(?:x\d+)+\b", "<n>…"),
        (r"(^|[^\w.<])[-+]?(?:\d[\d_,]*\d|\d)(?:\.\d*)?(?:[eE][-+]?\d+)?\b", "$1<n>"),
        (r"(^|[^\w<])[-+]?\.\d+(?:[eE][-+]?\d+)?\b", "$1<n>"),
        (r"<n>\.\s*(?:[,\])]|$)", "<n>"),
        (r"<n>(?:[,;x×] ?<n>)+,?", "<n>…"),
        (r"\s+", " "),
    ]
    .into_iter()
    .filter_map(|(pattern, stands)| Regex::new(pattern).ok().map(|pattern| (pattern, stands)))
    .collect()
});

/// The signature of an exception with its message, and the file of its deepest frame.
pub fn signature(exception: &str, message: &str, file: Option<&str>) -> String {
    let exception = exception.rsplit('.').next().unwrap_or(exception);
    let message = normal(message);
    let mut text = match (exception.is_empty(), message.is_empty()) {
        (false, false) => format!("{exception}: {message}"),
        (false, true) => exception.to_owned(),
        _ => message,
    };
    if let Some(file) = file {
        text.push_str(" @ ");
        text.push_str(file);
    }
    text
}

/// A message's first line without what is different each time.
pub fn normal(message: &str) -> String {
    let first = message.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let mut text: String = first.chars().take(4 * LONGEST).collect();
    for (pattern, stands) in VARYING.iter() {
        text = pattern.replace_all(&text, *stands).into_owned();
    }
    let text: String = text.chars().filter(|c| !c.is_control()).collect();
    let text = text.trim();
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn all_patterns_are_read() {
        assert_eq!(VARYING.len(), 18);
    }

    #[test]
    fn what_differs_each_time_does_not_stand_in_a_signature() {
        let told = |one: &str, other: &str| {
            assert_eq!(normal(one), normal(other));
            normal(one)
        };
        let pairs = [
            ("<Group object at 0x7fd7bd1e69d0>", "<Group object at 0x55aa>"),
            (
                "CUDA out of memory. Tried to allocate 2.50 GiB",
                "CUDA out of memory. Tried to allocate 512 MiB",
            ),
            ("rank 3 waited 10.2 s for rank 0", "rank 1 waited 9 s for rank 12"),
            ("no file /tmp/pytest-of-a/pytest-3/x.pt", "no file /var/tmp/b/c/x.pt"),
            (
                "tmpab12cd_x is gone since 2026-12-01T10:00:00Z",
                "tmpzzzz0000 is gone since 2025-01-30T23:59:59Z",
            ),
            ("blob 9f86d081884c7d65 differs", "blob 60303ae22b998861 differs"),
            ("assert 8 == 6", "assert -1.5e-3 == 12"),
            (
                "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)",
                "mat1 and mat2 shapes cannot be multiplied (16x16 and 1x1)",
            ),
            ("size [2, 3, 4] on cuda:0", "size [5, 6] on cuda:1"),
            ("\u{1b}[31mno\u{1b}[0m such key 7", "no such key 8"),
        ];
        insta::assert_snapshot!(pairs.map(|(one, other)| told(one, other)).join("\n"));
    }

    #[test]
    fn what_tells_errors_apart_stays() {
        let apart = [
            "expected float32, got bfloat16",
            "expected float16, got int8",
            "'Config' object has no attribute 'ep_size'",
            "'Config' object has no attribute 'tp_size'",
            "SIGSEGV",
        ];
        for (at, text) in apart.iter().enumerate() {
            assert_eq!(normal(text), *text);
            assert!(apart[..at].iter().all(|other| normal(other) != normal(text)));
        }
        assert_eq!(
            signature("torch.OutOfMemoryError", "at 3 MiB\nmore", Some("a/b.py")),
            "OutOfMemoryError: at <size> @ a/b.py"
        );
    }

    proptest! {
        #[test]
        fn a_signature_of_a_signature_is_itself_and_bounded(text in ".{0,300}") {
            let once = normal(&text);
            prop_assert!(once.chars().count() <= LONGEST + 1);
            prop_assert!(!once.chars().any(char::is_control));
        }

        #[test]
        fn numbers_ranks_and_addresses_never_matter(a in 0u32..100_000, b in 0u32..100_000, c in any::<u64>(), d in any::<u64>()) {
            let one = format!("rank {a} of 8 lost {b} bytes at {c:#x}: {}.5", a);
            let other = format!("rank {b} of 4 lost {a} bytes at {d:#x}: {}.25", b);
            prop_assert_eq!(normal(&one), normal(&other));
        }
    }
}
