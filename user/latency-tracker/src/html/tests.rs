// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Pages with hostile names, and properties of every page.

use serde_json::Value;

use super::*;

/// Names that would run a script if they were not escaped.
pub(super) const HOSTILE: [&str; 6] = [
    "</script><img src=x onerror=alert(1)>",
    "</pre><script>alert(2)</script>",
    "<!--<script>",
    "\"'>&lt;{{data}}{{nonce}}",
    "]]>\u{2028}\u{2029}\u{0}\u{1b}",
    "javascript:alert(3)",
];

/// The data of a page, as its script reads it.
pub(crate) fn data(page: &str) -> Value {
    let (_, rest) = page.split_once("id=\"data\">").unwrap();
    let (data, _) = rest.split_once("</script>").unwrap();
    serde_json::from_str(data).unwrap()
}

pub(super) fn page_of(names: &[&str]) -> Page {
    let mut words = Words::default();
    let bar = |(i, name): (usize, &&str)| {
        let word = words.number(name.to_string());
        Bar(i as u64, 1, Kind::Running, word, Some(0), Some(word))
    };
    let bars = names.iter().enumerate().map(bar).collect();
    let all = names.join(" ");
    Page {
        title: all.clone(),
        choice: "Alert",
        left_out: vec![all.clone()],
        views: vec![View {
            name: all.clone(),
            text: all.clone(),
            picture: "<svg><title>a</title></svg>".into(),
            verdict: Some(all.clone()),
            facts: vec![("Task".into(), all.clone())],
            notes: vec![all.clone()],
            left_out: vec![all.clone()],
            origin: u64::MAX,
            length: 10,
            focus: (1, 9),
            groups: vec![Group {
                name: "CPUs",
                lanes: vec![Lane {
                    name: all.clone(),
                    bars,
                }],
            }],
            arrows: vec![Arrow(1, 0, 2, 0, true)],
            words,
            tables: vec![Table {
                title: all.clone(),
                columns: vec![Column("Thread", Cells::Text)],
                rows: vec![Row(vec![all.clone().into()], Some((1, 2)))],
                note: Some(all),
            }],
        }],
    }
}

/// The tags of a page, without the contents of its scripts and its style.
fn tags(page: &str) -> Vec<String> {
    let mut tags = Vec::new();
    let mut rest = page;
    while let Some((_, tag)) = rest.split_once('<') {
        let (tag, after) = tag.split_once('>').unwrap();
        rest = after;
        tags.push(tag.to_string());
        for raw in ["script", "style"] {
            if tag.split(' ').next() == Some(raw) {
                let (_, after) = rest.split_once(&format!("</{raw}>")).unwrap();
                tags.push(format!("/{raw}"));
                rest = after;
            }
        }
    }
    tags
}

#[test]
fn a_name_is_never_markup() {
    let written = page_of(&HOSTILE).page().unwrap();
    let harmless = page_of(&["a"; 6]).page().unwrap();
    let without_nonce = |page: &str| -> Vec<String> {
        let tags = tags(page).into_iter();
        tags.map(|tag| tag.split(" nonce=").next().unwrap().to_string())
            .filter(|tag| !tag.starts_with("meta http-equiv"))
            .collect()
    };
    assert_eq!(without_nonce(&written), without_nonce(&harmless));
    // The script and the reader get the unchanged name.
    let data = data(&written);
    let view = &data["views"][0];
    let all = HOSTILE.join(" ");
    assert_eq!(data["title"], all.as_str());
    for (bar, name) in view["groups"][0]["lanes"][0]["bars"]
        .as_array()
        .unwrap()
        .iter()
        .zip(HOSTILE)
    {
        let word = bar[3].as_u64().unwrap() as usize;
        assert_eq!(view["words"][word], name);
    }
    assert!(written.contains("</pre><div class=\"wide\" tabindex=\"0\"><svg>"));
    assert!(written.contains("&lt;/pre&gt;&lt;script&gt;alert(2)&lt;/script&gt;"));
    // A name that looks like a placeholder of the template is not replaced.
    assert!(written.contains("{{data}}{{nonce}}"));
}

#[test]
fn tags_are_balanced() {
    let mut open = Vec::new();
    for tag in tags(&page_of(&HOSTILE).page().unwrap()) {
        let name = tag.split(' ').next().unwrap();
        match name.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop().as_deref(), Some(name)),
            None if ["!doctype", "!--", "meta"].contains(&name) => {}
            None => open.push(name.to_string()),
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn nothing_is_loaded_and_no_other_script_runs() {
    let page = page_of(&HOSTILE).page().unwrap();
    let (_, policy) = page
        .split_once("Content-Security-Policy\" content=\"")
        .unwrap();
    let (policy, _) = policy.split_once('"').unwrap();
    let (_, nonce) = policy.split_once("script-src 'nonce-").unwrap();
    let (nonce, _) = nonce.split_once('\'').unwrap();
    assert_eq!(
        policy,
        format!(
            "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; base-uri 'none'; form-action 'none'"
        )
    );
    let marked: Vec<_> = tags(&page)
        .into_iter()
        .filter(|tag| tag.contains(&format!("nonce=\"{nonce}\"")))
        .collect();
    assert_eq!(marked.len(), 2, "{marked:?}");
    assert_eq!(page.matches(nonce).count(), 4);
    // Different data has a different nonce.
    assert!(!page_of(&["a"]).page().unwrap().contains(nonce));
    for (text, bad) in [
        (
            SCRIPT,
            &[
                "</script",
                "<!--",
                "innerHTML",
                "outerHTML",
                "insertAdjacent",
                "document.write",
                "eval(",
                "Function(",
                "fetch(",
                "XMLHttp",
                "import(",
                "://",
            ][..],
        ),
        (STYLE, &["</style", "@import", "url(", "://"]),
        (TEMPLATE, &["src=", "href=", "style=", "onclick", "://"]),
    ] {
        for word in bad {
            assert!(!text.contains(word), "{word}");
        }
    }
}

#[test]
fn the_same_data_gives_the_same_page() {
    assert_eq!(
        page_of(&HOSTILE).page().unwrap(),
        page_of(&HOSTILE).page().unwrap()
    );
    // Numbers beyond 2^53 are text.
    let data = data(&page_of(&["a"]).page().unwrap());
    assert_eq!(data["views"][0]["origin"], u64::MAX.to_string());
}

#[test]
fn each_kind_has_its_colours_in_both_modes() {
    for (number, (name, label)) in Kind::ALL.iter().enumerate() {
        assert!(!label.is_empty());
        for colour in [format!("--{name}: "), format!("--on-{name}: ")] {
            assert_eq!(STYLE.matches(&colour).count(), 2, "{colour}");
        }
        assert!(number < 9);
    }
    assert_eq!(Kind::ALL[Kind::Alert as usize].0, "alert");
    assert_eq!(Kind::ALL[Kind::Merged as usize].0, "merged");
    assert_eq!(Kind::ALL[Kind::Running as usize].0, "running");
}

#[test]
fn a_page_replaces_a_file_and_no_directory() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.html");
    std::fs::write(&file, "before").unwrap();
    page_of(&["a"]).write(&file).unwrap();
    let written = std::fs::read_to_string(&file).unwrap();
    assert!(written.starts_with("<!doctype html>") && written.ends_with("</html>\n"));
    let error = page_of(&["a"]).write(dir.path()).unwrap_err();
    let error = format!("{error:#}");
    assert!(error.ends_with(": not a regular file"), "{error}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}
