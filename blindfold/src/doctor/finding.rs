//! What was found, what it means, and what to do about it.

use std::fmt;

use serde::Serialize;

/// Longest text of a finding, in characters: some of it is what others answered.
const MAX_TEXT_CHARS: usize = 600;

/// What a finding means for the role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Level {
    /// As it should be.
    Ok,
    /// It could not be looked at, because of something else.
    NotChecked,
    /// The role runs, but somebody should look.
    Warning,
    /// The role does not start, or does not do its work.
    Error,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ok => "ok",
            Self::NotChecked => "not checked",
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// What a finding is about, in the order of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Area {
    /// The settings themselves.
    Settings,
    /// Files that they name.
    Files,
    /// Keys, and whose they are.
    Keys,
    /// The store on this disk.
    Store,
    /// The role's process.
    Process,
    /// This machine's clock.
    Clock,
    /// L1: its endpoint, and what it says of the deployment.
    L1,
    /// The execution client.
    Execution,
    /// The other roles.
    Peers,
}

impl fmt::Display for Area {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Settings => "settings",
            Self::Files => "files",
            Self::Keys => "keys",
            Self::Store => "store",
            Self::Process => "process",
            Self::Clock => "clock",
            Self::L1 => "l1",
            Self::Execution => "execution",
            Self::Peers => "peers",
        })
    }
}

/// One row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    pub level: Level,
    pub area: Area,
    /// The setting, or what else was looked at.
    pub subject: String,
    pub found: String,
    /// What to do next; nothing where all is well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl Finding {
    pub fn ok(area: Area, subject: impl Into<String>, found: impl fmt::Display) -> Self {
        Self::new(Level::Ok, area, subject.into(), &found, None)
    }

    pub fn not_checked(
        area: Area,
        subject: impl Into<String>,
        found: impl fmt::Display,
        next: impl fmt::Display,
    ) -> Self {
        Self::new(Level::NotChecked, area, subject.into(), &found, Some(&next))
    }

    pub fn warning(
        area: Area,
        subject: impl Into<String>,
        found: impl fmt::Display,
        next: impl fmt::Display,
    ) -> Self {
        Self::new(Level::Warning, area, subject.into(), &found, Some(&next))
    }

    pub fn error(
        area: Area,
        subject: impl Into<String>,
        found: impl fmt::Display,
        next: impl fmt::Display,
    ) -> Self {
        Self::new(Level::Error, area, subject.into(), &found, Some(&next))
    }

    fn new(
        level: Level,
        area: Area,
        subject: String,
        found: &dyn fmt::Display,
        next: Option<&dyn fmt::Display>,
    ) -> Self {
        let next = next.map(|next| printable(&next.to_string()));
        Self { level, area, subject: printable(&subject), found: printable(&found.to_string()), next }
    }
}

/// One line without control characters, of bounded length: a server's answer must not rule the operator's terminal.
fn printable(text: &str) -> String {
    let mut line = String::with_capacity(text.len().min(MAX_TEXT_CHARS));
    for (count, character) in text.chars().enumerate() {
        if count == MAX_TEXT_CHARS {
            line.push('…');
            break;
        }
        line.push(if character.is_control() { ' ' } else { character });
    }
    line
}

/// All that was found.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report {
    /// The role whose settings these are.
    pub role: &'static str,
    /// Version of this program.
    pub version: &'static str,
    pub ok: usize,
    pub not_checked: usize,
    pub warnings: usize,
    pub errors: usize,
    pub findings: Vec<Finding>,
}

impl Report {
    pub fn new(role: &'static str, mut findings: Vec<Finding>) -> Self {
        // Stable: within an area as they were looked at.
        findings.sort_by_key(|finding| finding.area);
        let count = |level| findings.iter().filter(|finding| finding.level == level).count();
        Self {
            role,
            version: env!("CARGO_PKG_VERSION"),
            ok: count(Level::Ok),
            not_checked: count(Level::NotChecked),
            warnings: count(Level::Warning),
            errors: count(Level::Error),
            findings,
        }
    }

    /// The table: a line for each finding, and below it what to do.
    pub fn text(&self) -> String {
        let width = |of: fn(&Finding) -> String| {
            self.findings.iter().map(|finding| of(finding).chars().count()).max().unwrap_or_default()
        };
        let levels = width(|finding| finding.level.to_string());
        let areas = width(|finding| finding.area.to_string());
        let subjects = width(|finding| finding.subject.clone());
        let mut text = String::new();
        for Finding { level, area, subject, found, next } in &self.findings {
            text += &format!("{level:levels$}  {area:areas$}  {subject:subjects$}  {found}\n");
            if let Some(next) = next {
                text += &format!("{:indent$}→ {next}\n", "", indent = levels + areas + subjects + 6);
            }
        }
        text + &format!(
            "\n{} {}: ok {}, warning {}, error {}, not checked {}",
            self.role, self.version, self.ok, self.warnings, self.errors, self.not_checked
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        Report::new(
            "sequencer",
            vec![
                Finding::error(Area::Peers, "sequencer.members[1].url", "no answer", "start it"),
                Finding::ok(Area::Settings, "sequencer.toml", "parses"),
                Finding::warning(Area::L1, "balance", "0 ether", "send it ether"),
                Finding::not_checked(Area::Store, "sequencer.data_dir", "no store", "start the role once"),
            ],
        )
    }

    #[test]
    fn the_table_has_a_line_for_each_finding_and_what_to_do_below_it() {
        assert_eq!(
            report().text(),
            "\
ok           settings  sequencer.toml            parses
not checked  store     sequencer.data_dir        no store
                                                 → start the role once
warning      l1        balance                   0 ether
                                                 → send it ether
error        peers     sequencer.members[1].url  no answer
                                                 → start it

sequencer 0.1.0: ok 1, warning 1, error 1, not checked 1"
                .replace("0.1.0", env!("CARGO_PKG_VERSION"))
        );
    }

    #[test]
    fn json_has_the_same_under_stable_names() {
        let json = serde_json::to_value(report()).unwrap();
        assert_eq!((&json["errors"], &json["notChecked"]), (&1.into(), &1.into()));
        assert_eq!(
            json["findings"][0],
            serde_json::json!({"level": "ok", "area": "settings", "subject": "sequencer.toml", "found": "parses"})
        );
        assert_eq!(json["findings"][1]["level"], "not_checked");
        assert_eq!(json["findings"][3]["next"], "start it");
    }

    #[test]
    fn what_others_said_cannot_rule_the_terminal() {
        let hostile = format!("\u{1b}[2J\r\n{}", "x".repeat(10_000));
        let finding = Finding::error(Area::Peers, "url", hostile, "look");
        assert!(!finding.found.contains(char::is_control));
        assert_eq!(finding.found.chars().count(), MAX_TEXT_CHARS + 1);
    }
}
