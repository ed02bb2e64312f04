//! Archives of data: whether each answers, and whether those that the sequencer writes into take what it has.

use std::path::PathBuf;

use blindfold_l1::{Archive, ArchiveRoom, ArchiveToken, ArchivedData, L1Error, MAX_ARCHIVED_BYTES};
use blindfold_runtime::{blocking, joined, spawn};
use blindfold_telemetry::redact_url;

use super::{
    Patience,
    finding::{Area, Finding, Level},
    local::{Content, secret_file},
};
use crate::roles::{L1Settings, l1::archive_token};

const TOKENS: &str = "archive_token_files";
/// An archive of which less than this part is free should be made larger.
const FREE_PART: u64 = 10;

/// `tokens`: the files of their tokens, for a role that writes into them.
pub(super) async fn look(l1: L1Settings, tokens: Option<Vec<PathBuf>>, patience: Patience) -> Vec<Finding> {
    if l1.archive_urls.is_empty() {
        return Vec::new();
    }
    let (writes, files) = (tokens.is_some(), tokens.unwrap_or_default());
    // Faults of their own stand among the settings'.
    let Ok((mut findings, tokens)) = blocking(move || read_tokens(&files)).await else { return Vec::new() };
    let asked: Vec<_> = l1
        .archive_urls
        .into_iter()
        .enumerate()
        .map(|(index, url)| spawn(ask(url, tokens.get(index).cloned().flatten(), writes, patience)))
        .collect();
    let mut answers = Vec::new();
    for answer in asked {
        answers.extend(joined(answer.await));
    }
    findings.extend(judged(&answers, writes));
    findings
}

/// What is wrong with the files, and the tokens in their order.
fn read_tokens(files: &[PathBuf]) -> (Vec<Finding>, Vec<Option<ArchiveToken>>) {
    let mut findings = Vec::new();
    let tokens = files.iter().enumerate().map(|(index, file)| {
        let setting = format!("{TOKENS}[{index}]");
        let found = secret_file(&setting, file, Content::Plain);
        let token = archive_token(file);
        findings.push(match &token {
            Err(fault) if found.level != Level::Error => {
                let next = "write the archive's token into its first line, as in its --token-file";
                Finding::error(Area::Files, setting, format!("{fault:#}"), next)
            }
            _ => found,
        });
        token.ok()
    });
    let tokens = tokens.collect();
    (findings, tokens)
}

/// What became of asking one archive.
struct Answer {
    /// Its URL, without what is secret.
    url: String,
    /// Whether it gives data.
    gives: Result<(), L1Error>,
    /// The room that it has; none where that was not asked for.
    room: Option<Result<ArchiveRoom, L1Error>>,
}

async fn ask(url: String, token: Option<ArchiveToken>, writes: bool, patience: Patience) -> Answer {
    let shown = redact_url(&url);
    let archive = match Archive::new(&[url], patience.answer_ms) {
        Ok(archive) => archive.with_tokens(token.as_slice()),
        Err(fault) => return Answer { url: shown, gives: Err(fault), room: None },
    };
    // No bytes: an archive has them or not, and both is an answer.
    let gives = match ArchivedData::of(&[]) {
        Ok(named) => archive.fetch(&named).await.map(drop),
        Err(_) => Ok(()),
    };
    let gives = match gives {
        Err(L1Error::HttpStatus { status: 404, .. }) => Ok(()),
        other => other,
    };
    let room = match (&gives, writes) {
        (Ok(()), true) => Some(archive.room().await),
        _ => None,
    };
    Answer { url: shown, gives, room }
}

/// A sequencer needs one that takes its data; whoever only reads goes on without.
fn judged(answers: &[Answer], writes: bool) -> Vec<Finding> {
    let none_takes = writes && !answers.iter().any(may_take);
    let found = answers.iter().enumerate().map(|(index, answer)| {
        let found = of_answer(index, answer);
        let is_worse = none_takes && found.level == Level::Warning;
        Finding { level: if is_worse { Level::Error } else { found.level }, ..found }
    });
    found.collect()
}

/// Whether it takes data, or does not tell.
fn may_take(answer: &Answer) -> bool {
    match &answer.room {
        Some(Ok(room)) => has_room(room),
        Some(Err(L1Error::HttpStatus { status, .. })) => matches!(*status, 404 | 405),
        _ => false,
    }
}

fn has_room(room: &ArchiveRoom) -> bool {
    room.used_bytes.saturating_add(MAX_ARCHIVED_BYTES as u64) <= room.max_bytes
}

fn of_answer(index: usize, Answer { url, gives, room }: &Answer) -> Finding {
    let setting = format!("l1.archive_urls[{index}]");
    let warning = |found: String, next: &str| Finding::warning(Area::L1, setting.clone(), found, next);
    match (gives, room) {
        (Err(fault @ (L1Error::Url { .. } | L1Error::Tls(_))), _) => {
            let next = "correct `l1.archive_urls`: the role does not start";
            Finding::error(Area::L1, setting.clone(), format!("{url}: {fault}"), next)
        }
        (Err(fault), _) => warning(
            format!("{url}: {fault}"),
            "start that archive, see that this machine reaches it, or correct `l1.archive_urls`",
        ),
        (Ok(()), None) => Finding::ok(Area::L1, setting.clone(), format!("{url}: answers")),
        (Ok(()), Some(Err(L1Error::HttpStatus { status: 401 | 403, .. }))) => warning(
            format!("{url}: takes nothing without its token"),
            "name a file in `archive_token_files`, in this archive's place, with the token of its --token-file",
        ),
        (Ok(()), Some(Err(L1Error::HttpStatus { status: 404 | 405, .. }))) => warning(
            format!("{url}: answers, and does not say whether it takes data"),
            "name its --write-addr: at its --read-addr everybody reads and nobody writes",
        ),
        (Ok(()), Some(Err(fault))) => {
            warning(format!("{url}: {fault}"), "look at that archive's log: it takes nothing")
        }
        (Ok(()), Some(Ok(room))) => {
            let ArchiveRoom { used_bytes, max_bytes } = *room;
            let found = format!("{url}: holds {used_bytes} of {max_bytes} bytes");
            let next = "raise its --max-bytes, on a larger disk if need be, and restart it";
            if !has_room(room) {
                warning(format!("{found}, and takes no long piece any more"), next)
            } else if max_bytes.saturating_sub(used_bytes) < max_bytes / FREE_PART {
                warning(found, next)
            } else {
                Finding::ok(Area::L1, setting.clone(), format!("{found}, and takes data"))
            }
        }
    }
}

#[cfg(test)]
#[path = "archives_tests.rs"]
mod tests;
