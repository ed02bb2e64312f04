//! `blindfold committee key`: a member's key file and its public file.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use blindfold_client::KeySource;
use blindfold_committee::key_file::{self, KeyFilePublic};
use blindfold_runtime::rng;
use clap::{Args, Subcommand};
use zeroize::Zeroizing;

pub(crate) const EXAMPLES: &str = "Examples:
  blindfold committee key show member-1.key
  blindfold committee key add member-1.key --from next/member-1.key --password-file password
  blindfold committee key public member-1.key --password-file password

A key file holds the secrets of one member, a key for each epoch; the public file beside it (member-1.key.json) is what
`blindfold l1 register` needs. A member that runs takes the key of the parameters in its settings.";

/// `blindfold committee key …`
#[derive(Subcommand, Debug)]
pub enum KeyCommand {
    /// Show what the public file says of the keys, of which a key file may have more; no password is needed
    Show {
        /// The public file, or the key file that it lies beside
        file: PathBuf,
        /// Print JSON, as the public file has it
        #[arg(long)]
        json: bool,
    },
    /// Add the key of another epoch, out of the key file that its dealing made; that one stays as it is
    ///
    /// May be repeated after a failure. A file of the old form, which held one key, gets the present form.
    Add {
        /// The key file that gets it
        file: PathBuf,
        /// The key file with the key to be added
        #[arg(long, value_name = "FILE")]
        from: PathBuf,
        /// File whose first line is the password of the key to be added; without it that of the key file
        #[arg(long, value_name = "FILE")]
        from_password_file: Option<PathBuf>,
        #[command(flatten)]
        password: PasswordArgs,
    },
    /// Make the public file anew from the key file, in place of one that is missing, damaged or too old
    Public {
        /// The key file
        file: PathBuf,
        #[command(flatten)]
        password: PasswordArgs,
    },
}

/// How a key file is opened.
#[derive(Args, Debug)]
pub struct PasswordArgs {
    /// File whose first line is the password of the key file
    #[arg(long, value_name = "FILE")]
    password_file: PathBuf,
    /// Print JSON, as the public file has it
    #[arg(long)]
    json: bool,
}

/// Runs one of these commands.
///
/// # Errors
/// Files that cannot be read, opened or written.
pub fn run(command: &KeyCommand) -> Result<()> {
    match command {
        KeyCommand::Show { file, json } => {
            let keys = key_file::read_public(file).with_context(|| named(file))?;
            if !json {
                println!("{} says, unchecked against the secrets:", named(&shown(file)));
            }
            print(*json, &keys);
        }
        KeyCommand::Add { file, from, from_password_file, password } => {
            let own = password_of(file, &password.password_file)?;
            let other = match from_password_file {
                Some(path) => password_of(from, path)?,
                None => own.clone(),
            };
            let keys = key_file::add(file, own.as_bytes(), from, other.as_bytes(), &mut rng());
            print(password.json, &keys.with_context(|| format!("{} from {}", named(file), named(from)))?);
        }
        KeyCommand::Public { file, password } => {
            let own = password_of(file, &password.password_file)?;
            let keys = key_file::write_public(file, own.as_bytes()).with_context(|| named(file))?;
            print(password.json, &keys);
        }
    }
    Ok(())
}

fn named(path: &Path) -> String {
    path.display().to_string()
}

/// The file that is read for what is public: a key file of the old form lies alone.
fn shown(file: &Path) -> PathBuf {
    Some(key_file::public_path(file)).filter(|beside| beside.exists()).unwrap_or_else(|| file.to_owned())
}

fn password_of(file: &Path, password_file: &Path) -> Result<Zeroizing<String>> {
    let source = KeySource {
        file: file.to_owned(),
        password_file: Some(password_file.to_owned()),
        password_env: None,
    };
    Ok(source.password()?)
}

fn print(json: bool, keys: &[KeyFilePublic]) {
    if json {
        print!("{}", key_file::public_json(keys));
        return;
    }
    for key in keys {
        println!("member {}", key.member);
        println!("  parameters      {}", key.parameters_hash);
        println!("  BLS public key  0x{}", hex::encode(key.bls_public_key));
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use blindfold_bte::Parameters;
    use blindfold_committee::key_file::KeyFileCost;

    use super::*;
    use crate::dealer::{Deal, deal};

    #[test]
    fn the_key_of_a_later_epoch_joins_the_first_and_a_lost_public_file_comes_back() {
        let dir = tempfile::tempdir().unwrap();
        let cost = KeyFileCost { memory_kib: 8, iterations: 1, lanes: 1 };
        let dealt = ["a", "b"].map(|password| {
            let out = dir.path().join(password);
            deal(&Deal { max_batch: 1, members: 3, threshold: 2, out: &out, password, cost }).unwrap()
        });
        let passwords = ["a", "b"].map(|name| {
            let path = dir.path().join(format!("password-{name}"));
            fs::write(&path, format!("{name}\n")).unwrap();
            path
        });
        let [file, from] = [0, 1].map(|epoch: usize| dealt[epoch].members[2].0.clone());
        let password = || PasswordArgs { password_file: passwords[0].clone(), json: false };
        let add = |from_password_file| {
            let (file, from) = (file.clone(), from.clone());
            run(&KeyCommand::Add { file, from, from_password_file, password: password() })
        };
        let refused = format!("{:#}", add(None).unwrap_err());
        assert!(refused.contains("wrong password") && refused.contains("member-3.key"), "{refused}");
        add(Some(passwords[1].clone())).unwrap();
        let public = key_file::public_path(&file);
        assert_eq!([shown(&file), shown(&public)], [public.clone(), public.clone()]);
        fs::remove_file(&public).unwrap();
        assert_eq!(shown(&file), file);
        run(&KeyCommand::Public { file: file.clone(), password: password() }).unwrap();
        run(&KeyCommand::Show { file: file.clone(), json: true }).unwrap();
        run(&KeyCommand::Show { file: public, json: false }).unwrap();
        for epoch in &dealt {
            let bytes = fs::read(&epoch.parameters).unwrap();
            let parameters = Parameters::decode(&bytes).unwrap();
            assert_eq!(key_file::open(&file, b"a", &parameters).unwrap().public, epoch.members[2].1);
        }
    }
}
