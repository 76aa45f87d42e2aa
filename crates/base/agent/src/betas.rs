//! Anthropic's beta flags, in a header or in a request: which are passed on.

use crate::object::Json;

/// Names, without their dates, of betas that change how an answer is made or read. Not among them are those that open something of
/// the host's: its connectors, containers, files, skills, searches, other models, other prices.
const PERMITTED: [&str; 41] = [
    "adaptive-thinking",
    "advanced-tool-use",
    "cache-diagnosis",
    "cache-keepalive",
    "claude-code",
    "claude-code-side-query",
    "compact",
    "computer-use",
    "context-1m",
    "context-hint",
    "context-management",
    "dev-full-thinking",
    "effort",
    "extended-cache-ttl",
    "fine-grained-tool-streaming",
    "interleaved-thinking",
    "max-effort",
    "max-tokens-3-5-sonnet",
    "mid-conversation-system",
    "mid-conversation-system-clear-at",
    "mid-conversation-tool-changes",
    "model-context-window-exceeded",
    "output-128k",
    "output-300k",
    "pdfs",
    "per-turn-control",
    "prompt-caching",
    "prompt-caching-evict",
    "prompt-caching-scope",
    "redact-thinking",
    "request-tags",
    "structured-outputs",
    "task-budgets",
    "thinking-binding-controls",
    "thinking-display-updates",
    "thinking-resumption",
    "thinking-token-count",
    "token-counting",
    "token-efficient-tools",
    "tool-provenance",
    "tool-search-tool",
];

/// Whether a flag is passed on, whatever its date.
pub(crate) fn is_permitted(flag: &str) -> bool {
    PERMITTED.contains(&undated(flag))
}

/// A flag's name: `interleaved-thinking` of `interleaved-thinking-2025-05-14`, `claude-code` of `claude-code-20250219`.
fn undated(flag: &str) -> &str {
    let digits =
        |text: &str, count: usize| text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<&str> = flag.rsplitn(4, '-').collect();
    match parts[..] {
        [day, month, year, name] if digits(day, 2) && digits(month, 2) && digits(year, 4) => name,
        [date, ..] if digits(date, 8) => {
            flag.strip_suffix(date).and_then(|name| name.strip_suffix('-')).unwrap_or(flag)
        }
        _ => flag,
    }
}

/// Takes flags that are not passed on out of a request's own list.
pub(crate) fn take_flags(list: &mut Vec<Json<'_>>, path: &str, taken: &mut Vec<String>) {
    list.retain(|item| {
        let flag = item.as_text();
        let kept = flag.is_some_and(is_permitted);
        if !kept {
            taken.push(format!("{path}.{}", flag.unwrap_or("?")));
        }
        kept
    });
}

/// What of a header's flags is passed on; names of those that are not.
pub(crate) fn permitted_flags(value: &str) -> (Vec<&str>, Vec<&str>) {
    let flags = value.split(',').map(str::trim).filter(|flag| !flag.is_empty());
    flags.partition(|flag| is_permitted(flag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_that_open_something_of_the_hosts_are_not_passed_on_whatever_their_date() {
        let value = "claude-code-20250219, mcp-client-2025-04-04,interleaved-thinking-2025-05-14,,files-api-2025-04-14";
        let (kept, taken) = permitted_flags(value);
        assert_eq!(kept, ["claude-code-20250219", "interleaved-thinking-2025-05-14"]);
        assert_eq!(taken, ["mcp-client-2025-04-04", "files-api-2025-04-14"]);
        for flag in [
            "code-execution-2025-05-22",
            "code-execution-2099-01-01",
            "skills-2025-10-02",
            "web-fetch-2025-09-10",
            "advisor-tool-2026-03-01",
            "fast-mode-2026-02-01",
            "server-side-fallback-2026-06-01",
            "managed-agents-2026-04-01",
            "effort-2025",
            "of-tomorrow-2027-01-01",
            "2025-01-01",
            "",
        ] {
            assert!(!is_permitted(flag), "{flag}");
        }
    }

    #[test]
    fn a_flags_name_is_what_stands_before_its_date() {
        for (flag, name) in [
            ("effort-2025-11-24", "effort"),
            ("claude-code-20250219", "claude-code"),
            ("max-tokens-3-5-sonnet-2024-07-15", "max-tokens-3-5-sonnet"),
            ("effort", "effort"),
            ("effort-2025-11", "effort-2025-11"),
        ] {
            assert_eq!(undated(flag), name);
        }
    }
}
