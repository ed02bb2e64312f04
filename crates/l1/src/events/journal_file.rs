//! The journal on disk, so that a start reads what is new on L1 and not everything since the deployment.
//!
//! Only what is final is in it. The file says for which deployment and up to which block it speaks, with that block's
//! hash: where L1 has another block there, and where the file is damaged, it is put aside and L1 is read anew. It is
//! replaced as a whole and only now and then: what is missing after a kill is read again.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use alloy_primitives::{Address, B256, keccak256};
use blindfold_protocol::{BatchHeader, Canonical, Deployment, header::BATCH_HEADER_BYTES};

use crate::events::{HintEvent, L1HeaderLog, PostedLog, journal::Journal};

/// Changes with the form of the file.
const VERSION: u8 = 3;
/// L1 blocks after which the file is replaced.
pub(crate) const SAVE_EVERY_BLOCKS: u64 = 1_000;
/// Bytes of one posted run: first, last, L1 block.
const RUN_BYTES: usize = 24;
/// Bytes of a pair of numbers.
const PAIR_BYTES: usize = 16;
/// Bytes of open hints: id, first, last, L1 block, publisher, transaction, root.
const OPEN_BYTES: usize = 116;
/// Bytes of a header that L1 made: header, L1 block, transaction.
const MADE_BYTES: usize = BATCH_HEADER_BYTES + 8 + 32;

/// Why a file does not speak for this chain. It is written anew.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum JournalFileError {
    #[error("it is damaged")]
    Damaged,
    #[error("it is of another version")]
    Version,
    #[error("it is of another deployment")]
    Deployment,
}

/// Where a journal is kept.
#[derive(Clone, Debug)]
pub(crate) struct JournalFile {
    pub(crate) path: PathBuf,
}

impl JournalFile {
    /// What the file says, and the hash of the block up to which it speaks; `None` where there is none.
    pub(crate) fn load(
        &self,
        deployment: &Deployment,
        start_block: u64,
    ) -> io::Result<Option<Result<(Journal, B256), JournalFileError>>> {
        match fs::read(&self.path) {
            Ok(bytes) => Ok(Some(decode(&bytes, deployment, start_block))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Replaces the file; durable when it returns.
    pub(crate) fn save(
        &self,
        journal: &Journal,
        through_hash: B256,
        deployment: &Deployment,
        start_block: u64,
    ) -> io::Result<()> {
        let beside = self.path.with_extension("new");
        let mut file = File::create(&beside)?;
        file.write_all(&encode(journal, through_hash, deployment, start_block))?;
        file.sync_all()?;
        fs::rename(&beside, &self.path)?;
        File::open(self.path.parent().unwrap_or(Path::new(".")))?.sync_all()
    }
}

/// version · L1 chain id · inbox · start block · through · its hash · four lists, each with a count · keccak256 of all.
fn encode(journal: &Journal, through_hash: B256, deployment: &Deployment, start_block: u64) -> Vec<u8> {
    let mut out = vec![VERSION];
    let number = |out: &mut Vec<u8>, number: u64| out.extend_from_slice(&number.to_be_bytes());
    number(&mut out, deployment.l1_chain_id);
    out.extend_from_slice(deployment.inbox.as_slice());
    number(&mut out, start_block);
    number(&mut out, journal.through.unwrap_or(start_block));
    out.extend_from_slice(through_hash.as_slice());
    number(&mut out, journal.runs.len() as u64);
    for ((first, last), block) in &journal.runs {
        [*first, *last, *block].iter().for_each(|value| number(&mut out, *value));
    }
    number(&mut out, journal.made.len() as u64);
    for made in &journal.made {
        out.extend_from_slice(&made.header.encode());
        number(&mut out, made.l1_block);
        out.extend_from_slice(made.transaction.as_slice());
    }
    number(&mut out, journal.void.len() as u64);
    let hinted: Vec<(u64, u64)> = journal.hinted.iter().map(|(first, last)| (*first, *last)).collect();
    for (first, last) in &journal.void {
        [*first, *last].iter().for_each(|value| number(&mut out, *value));
    }
    number(&mut out, hinted.len() as u64);
    for (first, last) in &hinted {
        [*first, *last].iter().for_each(|value| number(&mut out, *value));
    }
    number(&mut out, journal.hints.open().count() as u64);
    for posted in journal.hints.open() {
        let PostedLog { id, first, last, publisher, l1_block, transaction, root } = *posted;
        [id, first, last, l1_block].iter().for_each(|value| number(&mut out, *value));
        out.extend_from_slice(publisher.as_slice());
        out.extend_from_slice(transaction.as_slice());
        out.extend_from_slice(root.as_slice());
    }
    let sum = keccak256(&out);
    out.extend_from_slice(sum.as_slice());
    out
}

fn decode(
    bytes: &[u8],
    deployment: &Deployment,
    start_block: u64,
) -> Result<(Journal, B256), JournalFileError> {
    let (content, sum) = bytes.split_last_chunk::<32>().ok_or(JournalFileError::Damaged)?;
    if keccak256(content).0 != *sum {
        return Err(JournalFileError::Damaged);
    }
    let mut rest = Rest(content);
    if rest.take::<1>()? != [VERSION] {
        return Err(JournalFileError::Version);
    }
    let of = (rest.number()?, Address::from(rest.take::<20>()?), rest.number()?);
    if of != (deployment.l1_chain_id, deployment.inbox, start_block) {
        return Err(JournalFileError::Deployment);
    }
    let through = rest.number()?;
    let through_hash = B256::from(rest.take::<32>()?);
    let runs = rest.list(RUN_BYTES, |rest| Ok(((rest.number()?, rest.number()?), rest.number()?)))?;
    let made = rest.list(MADE_BYTES, |rest| {
        let header = BatchHeader::decode(&rest.take::<BATCH_HEADER_BYTES>()?)
            .map_err(|_| JournalFileError::Damaged)?;
        Ok(L1HeaderLog { header, l1_block: rest.number()?, transaction: B256::from(rest.take::<32>()?) })
    })?;
    let void = rest.list(PAIR_BYTES, |rest| Ok((rest.number()?, rest.number()?)))?;
    let hinted = rest.list(PAIR_BYTES, |rest| Ok((rest.number()?, rest.number()?)))?;
    let open = rest.list(OPEN_BYTES, |rest| {
        let (id, first, last, l1_block) = (rest.number()?, rest.number()?, rest.number()?, rest.number()?);
        let publisher = Address::from(rest.take::<20>()?);
        let (transaction, root) = (B256::from(rest.take::<32>()?), B256::from(rest.take::<32>()?));
        Ok(HintEvent::Posted(PostedLog { id, first, last, publisher, l1_block, transaction, root }))
    })?;
    if !rest.0.is_empty() {
        return Err(JournalFileError::Damaged);
    }
    let (hinted, hints) = (hinted.into_iter().collect(), open.iter().collect());
    Ok((Journal { through: Some(through), runs, made, void, hinted, hints }, through_hash))
}

/// What is left to be read.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], JournalFileError> {
        let (head, tail) = self.0.split_first_chunk::<N>().ok_or(JournalFileError::Damaged)?;
        self.0 = tail;
        Ok(*head)
    }

    fn number(&mut self) -> Result<u64, JournalFileError> {
        Ok(u64::from_be_bytes(self.take()?))
    }

    fn list<T>(
        &mut self,
        entry_bytes: usize,
        mut entry: impl FnMut(&mut Self) -> Result<T, JournalFileError>,
    ) -> Result<Vec<T>, JournalFileError> {
        let count = usize::try_from(self.number()?).map_err(|_| JournalFileError::Damaged)?;
        // Nothing is reserved that the file does not hold.
        if count > self.0.len() / entry_bytes {
            return Err(JournalFileError::Damaged);
        }
        (0..count).map(|_| entry(self)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::test_header::plain_header;

    fn deployment() -> Deployment {
        Deployment { l1_chain_id: 7, inbox: Address::repeat_byte(1) }
    }

    fn journal() -> Journal {
        let header = BatchHeader {
            parent_hash: B256::repeat_byte(4),
            timestamp_ms: 5_000,
            l1_origin_number: 6,
            l1_origin_hash: B256::repeat_byte(7),
            l1_origin_time: 4,
            base_fee: 9,
            gas_base_fee: 10,
            fee_ledger_root: B256::repeat_byte(8),
            forced_cursor: 1,
            ..plain_header(3)
        };
        let posted = PostedLog {
            id: 7,
            first: 6,
            last: 9,
            publisher: Address::repeat_byte(3),
            l1_block: 41,
            transaction: B256::repeat_byte(2),
            root: B256::repeat_byte(9),
        };
        Journal {
            through: Some(90),
            runs: vec![((1, 2), 10), ((3, 3), 20), ((4, 9), 40)],
            made: vec![L1HeaderLog { header, l1_block: 20, transaction: B256::repeat_byte(5) }],
            void: vec![(1, 2)],
            hinted: BTreeMap::from([(4, 5)]),
            hints: [HintEvent::Posted(posted)].iter().collect(),
        }
    }

    #[test]
    fn a_journal_comes_back_and_nothing_else_is_taken_for_one() {
        let folder = tempfile::tempdir().unwrap();
        let file = JournalFile { path: folder.path().join("l1.journal") };
        assert!(file.load(&deployment(), 5).unwrap().is_none());
        let hash = B256::repeat_byte(6);
        for _ in 0..2 {
            file.save(&journal(), hash, &deployment(), 5).unwrap();
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
        assert_eq!(file.load(&deployment(), 5).unwrap(), Some(Ok((journal(), hash))));
        let other = Deployment { l1_chain_id: 8, ..deployment() };
        assert_eq!(file.load(&other, 5).unwrap(), Some(Err(JournalFileError::Deployment)));
        assert_eq!(file.load(&deployment(), 6).unwrap(), Some(Err(JournalFileError::Deployment)));
        let bytes = fs::read(&file.path).unwrap();
        for cut in 0..bytes.len() {
            assert_eq!(decode(&bytes[..cut], &deployment(), 5), Err(JournalFileError::Damaged), "{cut}");
        }
        for at in 0..bytes.len() {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1;
            assert_eq!(decode(&bytes, &deployment(), 5), Err(JournalFileError::Damaged), "{at}");
        }
        // What has a right sum and is no journal is not taken either.
        let resummed = |content: &[u8]| [content, keccak256(content).as_slice()].concat();
        let content = &bytes[..bytes.len() - 32];
        let longer = resummed(&[content, &[0]].concat());
        assert_eq!(decode(&longer, &deployment(), 5), Err(JournalFileError::Damaged));
        let newer = resummed(&[&[VERSION + 1], &content[1..]].concat());
        assert_eq!(decode(&newer, &deployment(), 5), Err(JournalFileError::Version));
    }
}
