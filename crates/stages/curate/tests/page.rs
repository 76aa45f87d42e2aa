//! The page of candidates: what it says, and that nothing of a stranger's text is taken for the page's own.

use infradev_curate::page;
use infradev_model::{Candidate, CurationDocument};
use serde_json::{Value, json};

fn candidate(title: &str, more: Value) -> Candidate {
    let lines = json!({ "files": 2, "added": 30, "deleted": 4 });
    let mut candidate = json!({
        "commit": "0123456789abcdef0123456789abcdef01234567",
        "base": "89abcdef0123456789abcdef0123456789abcdef",
        "number": "#12",
        "date": "2026-03-01T12:00:00+00:00",
        "title": title,
        "also": [{ "commit": "abcdef0123456789abcdef0123456789abcdef01", "by": "reland" }],
        "facts": {
            "source": lines, "substance": { "files": 1, "added": 20, "deleted": 2 }, "tests": lines, "other": lines,
            "definitions": {
                "functions_added": 1, "functions_changed": 2, "classes_added": 0, "classes_changed": 0,
                "public_added": 1, "settings": 1, "moved": 0, "renamed": 0, "removed": 0
            },
            "tests_added": 3, "tests_changed": 1,
            "needs": {
                "world": 4, "worlds": [2, 4], "distributed": true, "gpus": 4, "device": "cuda",
                "evidence": [{ "what": "world_size != 4", "place": "tests/test_a.py" }]
            },
            "native": [], "dependencies": ["pyproject.toml"],
            "locks": [{ "path": "uv.lock", "blob": "fedcba9876543210fedcba9876543210fedcba98" }],
            "area": { "is": "training", "evidence": [{ "what": "optimizer", "place": "subject" }] },
            "kind": { "is": "feature", "evidence": [{ "what": "add", "place": "subject" }] },
            "checks": { "numbers": [], "resources": [] },
            "hollow": { "functions": 1, "kept": 0 },
            "unparsed": []
        },
        "score": 42,
        "parts": [{ "name": "tests", "points": 7, "why": "3 added, 1 changed" }]
    });
    for (key, value) in more.as_object().unwrap() {
        candidate[key] = value.clone();
    }
    serde_json::from_value(candidate).unwrap()
}

fn document(candidates: Vec<Candidate>) -> CurationDocument {
    let mut document: CurationDocument = serde_json::from_value(json!({
        "schema": 1, "revisions": { "HEAD": "0123456789abcdef0123456789abcdef01234567" }, "commits": 9, "numbers": 8,
        "candidates": [], "left_out": { "no-tests": 3, "revert": 1 }, "related": [], "missing": []
    }))
    .unwrap();
    document.candidates = candidates;
    document
}

#[test]
fn a_page_shows_each_candidate_with_its_evidence_and_its_score_s_parts() {
    let fix = json!({ "number": null, "score": 7, "pull": {
        "url": "https://github.com/a/b/pull/3", "title": "x", "body": "y", "labels": ["bug"] } });
    let page =
        page("ours/stack", &document(vec![candidate("Add x", json!({})), candidate("Fix y", fix)])).unwrap();
    // Style and script are files of their own.
    let text = page.split_once("<style>").unwrap();
    let rest = text.1.split_once("</style>").unwrap().1.split_once("<script>").unwrap().0;
    insta::assert_snapshot!(format!("{}…{rest}", text.0));
}

#[test]
fn a_page_needs_nothing_from_outside() {
    let page = page("x", &document(vec![candidate("Add x", json!({}))])).unwrap();
    assert!(page.contains("default-src 'none'"));
    for way in ["<link", "<img", "<iframe", "src=", "@import", "url(", "fetch(", "XMLHttpRequest", "import("]
    {
        assert!(!page.contains(way), "{way}");
    }
}

#[test]
fn hostile_texts_stay_texts_wherever_they_stand() {
    let hostile = "</td></script><script>alert(1)</script><img src=x onerror=alert(2)>\"' &amp; {{ 7 * 7 }}";
    let evidence = json!([{ "what": hostile, "place": hostile }]);
    let mut bad = candidate(
        hostile,
        json!({ "number": hostile, "date": hostile, "commit": hostile, "base": hostile,
            "parts": [{ "name": hostile, "points": 1, "why": hostile }],
            "pull": { "url": "javascript:alert(3)", "title": hostile, "body": hostile, "labels": [hostile] } }),
    );
    bad.facts.native = vec![hostile.into()];
    bad.facts.unparsed = vec![hostile.into()];
    bad.facts.kind.evidence = serde_json::from_value(evidence).unwrap();
    let mut document = document(vec![bad]);
    document.missing = vec![hostile.into()];
    document.revisions = [(hostile.to_owned(), hostile.to_owned())].into();
    let page = page(hostile, &document).unwrap();
    assert_eq!(page.matches("<script").count(), 1, "the page's own");
    assert_eq!(page.matches("</script").count(), 1);
    assert!(!page.contains("<img") && !page.contains("javascript:") && !page.contains("onerror=alert(2)>\""));
    assert!(
        page.contains("&#60;script&#62;alert(1)") || page.contains("&lt;script&gt;alert(1)"),
        "it is shown"
    );
    assert!(page.contains("{{ 7 * 7 }}"), "a text is no template");
    let link = bad_link("https://x/\"><script>alert(1)</script>");
    assert_eq!(link.matches("<script").count(), 1);
}

fn bad_link(url: &str) -> String {
    let pull = json!({ "pull": { "url": url, "title": "", "body": "", "labels": [] } });
    page("x", &document(vec![candidate("x", pull)])).unwrap()
}
