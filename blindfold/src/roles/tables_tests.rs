//! Tables on disk: read when right, replaced when not, done without when there is no disk.

use std::path::PathBuf;

use blindfold_bte::{Portable, dealer};
use blindfold_runtime::{now, rng};

use super::*;

const MAX_BATCH: u32 = 5;

struct Stage {
    dir: tempfile::TempDir,
    file: Vec<u8>,
    backend: Portable,
}

impl Stage {
    fn new() -> Self {
        let (parameters, _) = dealer::deal(MAX_BATCH, 3, 2, &mut rng()).unwrap();
        Self { dir: tempfile::tempdir().unwrap(), file: parameters.encode(), backend: Portable::new(1) }
    }

    /// The parameters as a process has them after its start.
    fn restarted(&self) -> Parameters {
        Parameters::decode(&self.file).unwrap()
    }

    fn folder(&self) -> PathBuf {
        self.dir.path().join("data/tables")
    }

    fn path(&self) -> PathBuf {
        let parameters = self.restarted();
        let points = parameters.table_points(parameters.max_batch()).unwrap();
        self.folder().join(format!("{}-{points}.table", hex::encode(parameters.hash())))
    }

    fn provide(&self) -> Source {
        let parameters = self.restarted();
        let source = provide(&self.folder(), &parameters, &self.backend).unwrap();
        // From wherever it came, it is the table.
        assert_eq!(parameters.export_table(parameters.max_batch()).unwrap(), self.right());
        source
    }

    fn right(&self) -> Vec<u8> {
        self.restarted().export_table(MAX_BATCH as usize).unwrap()
    }

    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

fn replaced(source: Source) -> TableError {
    match source {
        Source::Computed { because: Absent::Refused(fault), written: Ok(()) } => fault,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_first_start_writes_what_the_second_reads() {
    let stage = Stage::new();
    let first = stage.provide();
    assert!(matches!(first, Source::Computed { because: Absent::Missing, written: Ok(()) }), "{first:?}");
    assert_eq!(fs::read(stage.path()).unwrap(), stage.right());
    assert!(matches!(stage.provide(), Source::Disk));
    assert_eq!(stage.files(), [stage.path().file_name().unwrap().to_str().unwrap()]);
}

/// What a kill in the midst of writing leaves; and what a disk leaves that lost what was flushed.
#[test]
fn a_kill_while_writing_costs_nothing_but_the_work() {
    let stage = Stage::new();
    stage.provide();
    let right = stage.right();
    let temporary = stage.path().with_extension("table.tmp");
    for length in [0, 1, 43, right.len() / 2, right.len() - 1] {
        // Killed before the rename: there is no table yet.
        fs::write(&temporary, &right[..length]).unwrap();
        fs::remove_file(stage.path()).unwrap();
        let source = stage.provide();
        assert!(matches!(source, Source::Computed { because: Absent::Missing, written: Ok(()) }));
        // The table itself cut off.
        fs::write(&temporary, &right[..length]).unwrap();
        fs::write(stage.path(), &right[..length]).unwrap();
        assert!(matches!(replaced(stage.provide()), TableError::Magic | TableError::Length { .. }));
        assert_eq!(fs::read(stage.path()).unwrap(), right);
        assert!(!temporary.exists());
        assert!(matches!(stage.provide(), Source::Disk));
    }
}

#[test]
fn what_is_no_table_of_these_parameters_is_replaced_and_other_files_stay() {
    let (stage, other) = (Stage::new(), Stage::new());
    stage.provide();
    let right = stage.right();
    let strange = stage.folder().join(other.path().file_name().unwrap());
    fs::write(&strange, b"another epoch's").unwrap();
    let changed = |position: usize| {
        let mut bytes = right.clone();
        bytes[position] ^= 1;
        bytes
    };
    fs::write(stage.path(), changed(8)).unwrap();
    assert_eq!(replaced(stage.provide()), TableError::Version(0));
    fs::write(stage.path(), other.right()).unwrap();
    assert_eq!(replaced(stage.provide()), TableError::Parameters);
    fs::write(stage.path(), changed(100)).unwrap();
    assert_eq!(replaced(stage.provide()), TableError::Checksum);
    // Far too long, it is not read to its end.
    fs::write(stage.path(), [right.clone(), vec![0; 100_000]].concat()).unwrap();
    assert!(matches!(replaced(stage.provide()), TableError::Length { actual, .. } if actual < 10_000));
    assert_eq!(fs::read(stage.path()).unwrap(), right);
    assert_eq!(fs::read(strange).unwrap(), b"another epoch's");
}

#[test]
fn without_a_disk_the_table_is_there_all_the_same() {
    let stage = Stage::new();
    // Neither the folder nor anything in it can be made: a file is in the way.
    fs::write(stage.dir.path().join("data"), b"").unwrap();
    let source = stage.provide();
    assert!(
        matches!(source, Source::Computed { because: Absent::Unreadable(_), written: Err(_) }),
        "{source:?}"
    );
    fs::remove_file(stage.dir.path().join("data")).unwrap();
    // A folder with the table's name cannot be replaced.
    fs::create_dir_all(stage.path().join("full")).unwrap();
    let source = stage.provide();
    assert!(
        matches!(source, Source::Computed { because: Absent::Unreadable(_), written: Err(_) }),
        "{source:?}"
    );
}

#[test]
fn a_single_ciphertext_needs_no_table() {
    let (parameters, _) = dealer::deal(1, 1, 1, &mut rng()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    assert!(provide(dir.path(), &parameters, &Portable::new(1)).is_none());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn tables_come_in_the_background() {
    let stage = Stage::new();
    let sets = vec![Arc::new(stage.restarted())];
    provide_in_background(
        &stage.dir.path().join("data"),
        sets,
        Arc::new(Portable::new(1)),
        Lines::OfTheNewest,
    );
    let started = now();
    while !stage.path().exists() {
        assert!(started.elapsed().as_secs() < 60, "no table was written");
        thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(matches!(stage.provide(), Source::Disk));
}
