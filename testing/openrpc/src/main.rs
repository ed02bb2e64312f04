//! Writes `docs/openrpc.json`; with `--check` fails where the file is another one.

use anyhow::{Result, bail};
use blindfold_openrpc::{
    FILE, document,
    source::{ROOT, read},
};

fn main() -> Result<()> {
    let document = document()?;
    match std::env::args().nth(1).as_deref() {
        None => std::fs::write(format!("{ROOT}/{FILE}"), document)?,
        Some("--check") if read(FILE)? == document => {}
        Some("--check") => bail!("{FILE} is not what the code says: run scripts/openrpc"),
        Some(other) => bail!("{other} is not known: scripts/openrpc [--check]"),
    }
    Ok(())
}
