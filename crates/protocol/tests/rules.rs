//! The numbered rules of the documents and the code that cites them, held together: a number that is cited exists, each
//! number is given once, and each rule is cited where it is enforced or tested.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// Where rules are given their numbers.
const DOCUMENTS: [&str; 3] = ["docs/protocol.md", "docs/l1.md", "docs/operate.md"];
/// Documents that cite rules and give none.
const READERS: [&str; 6] = [
    "README.md",
    "SECURITY.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "docs/architecture.md",
    "docs/coprocessor.md",
];
/// Rules that no code cites, each with the reason.
const NOT_CITED: [(&str, &str); 0] = [];
/// Folders of what is built or fetched.
const NOT_OURS: [&str; 5] = ["target", "node_modules", "out", "cache", "broadcast"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The number at the beginning of a text, such as `PD-1`: one or two capitals, a hyphen, digits, and then nothing that
/// would make it part of a longer word.
fn number_at(text: &str) -> Option<&str> {
    let bytes = text.as_bytes();
    let letters = bytes.iter().take_while(|byte| byte.is_ascii_uppercase()).count();
    if !(1..=2).contains(&letters) || bytes.get(letters) != Some(&b'-') {
        return None;
    }
    let digits = bytes[letters + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let end = letters + 1 + digits;
    let goes_on = bytes.get(end).is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    if digits == 0 || goes_on { None } else { text.get(..end) }
}

/// Every number in a text.
fn cited(text: &str) -> BTreeSet<String> {
    let bytes = text.as_bytes();
    let begins = |at: &usize| {
        bytes[*at].is_ascii_uppercase()
            && (*at == 0 || !(bytes[at - 1].is_ascii_alphanumeric() || matches!(bytes[at - 1], b'-' | b'_')))
    };
    (0..bytes.len())
        .filter(begins)
        .filter_map(|at| text.get(at..).and_then(number_at))
        .map(str::to_owned)
        .collect()
}

/// The number that a line gives to a rule: it stands first, perhaps behind the marks of a list and of bold type.
fn given(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = line.strip_prefix("- ").unwrap_or(line);
    let (bold, line) = line.strip_prefix("**").map_or((false, line), |rest| (true, rest));
    let number = number_at(line)?;
    let rest = &line[number.len()..];
    (rest.starts_with(':') || bold && rest.starts_with("** ")).then_some(number)
}

/// Sources in Rust and Solidity below a folder, without this test.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            if !name.starts_with('.') && !NOT_OURS.contains(&name.as_str()) {
                sources(&path, found);
            }
        } else if (name.ends_with(".rs") || name.ends_with(".sol"))
            && !path.ends_with("protocol/tests/rules.rs")
        {
            found.push(path);
        }
    }
}

#[test]
fn rules_and_the_code_that_cites_them_agree() {
    let root = root();
    let mut rules: BTreeMap<String, &str> = BTreeMap::new();
    for document in DOCUMENTS {
        for number in read(&root.join(document)).lines().filter_map(given) {
            let before = rules.insert(number.to_owned(), document);
            assert_eq!(before, None, "{document} gives {number} a second time");
        }
    }
    assert!(rules.len() > 100, "the rules were read");

    let mut code = Vec::new();
    sources(&root, &mut code);
    assert!(code.len() > 300, "the sources were found");
    let mut by_code = BTreeSet::new();
    let mut unknown = Vec::new();
    let documents = DOCUMENTS.iter().chain(&READERS).map(|document| root.join(document));
    for (path, is_code) in
        code.into_iter().map(|path| (path, true)).chain(documents.map(|path| (path, false)))
    {
        for number in cited(&read(&path)) {
            if !rules.contains_key(&number) {
                unknown.push(format!("{number} in {}", path.display()));
            } else if is_code {
                by_code.insert(number);
            }
        }
    }
    assert!(unknown.is_empty(), "no document has these rules: {unknown:#?}");

    let excepted: BTreeSet<&str> = NOT_CITED.iter().map(|(number, _)| *number).collect();
    let missing: Vec<&String> = rules
        .keys()
        .filter(|number| !by_code.contains(*number) && !excepted.contains(number.as_str()))
        .collect();
    assert!(missing.is_empty(), "no code cites these rules: {missing:?}");
    for number in excepted {
        assert!(rules.contains_key(number), "{number} is excepted and does not exist");
        assert!(!by_code.contains(number), "{number} is excepted and cited");
    }
}

#[test]
fn numbers_are_told_from_other_words() {
    assert_eq!(given("- **V-1** a bad encoding"), Some("V-1"));
    assert_eq!(given("**V-9** A clock"), Some("V-9"));
    assert_eq!(given("- **PD-1: the data"), Some("PD-1"));
    assert_eq!(given("- B-2: an announced"), Some("B-2"));
    for other in
        ["E-5 and E-8 say so", "| V-1 | a table |", "**V-1 and V-2** are cited", "- V-1 is cited", ""]
    {
        assert_eq!(given(other), None, "{other}");
    }
    let text = "(V-3, PD-10) E-8's EIP-712 AVX-512 x-1 A-b AB-1c -Q-1 _Q-2 R-1.";
    assert_eq!(cited(text).into_iter().collect::<Vec<_>>(), ["E-8", "PD-10", "R-1", "V-3"]);
}
