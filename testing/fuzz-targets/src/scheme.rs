use std::sync::OnceLock;

use crate::Counter;
use blindfold_bte::{
    Backend, Ciphertext, CiphertextPoint, EncryptionKey, MemberKey, Parameters, Proof, Release, auto, bls,
    dealer, verify_proof,
};

/// B = 3, one member.
fn parameters() -> &'static Parameters {
    static CELL: OnceLock<Parameters> = OnceLock::new();
    CELL.get_or_init(|| {
        dealer::from_secrets(3, 1, 1, &[5; 32], &vec![vec![[5; 32]]; 3]).expect("canonical secrets").0
    })
}

/// Points, keys and files of the scheme: what decodes encodes to the same bytes, backends agree, and nothing panics.
///
/// Input: what it is u8 · its bytes.
pub fn scheme(input: &[u8]) {
    let Some((kind, bytes)) = input.split_first() else { return };
    match kind % 9 {
        0 => {
            if let Ok(parameters) = Parameters::decode(bytes) {
                assert_eq!(parameters.encode(), bytes);
            }
        }
        1 => {
            if let Ok(key) = MemberKey::decode(bytes) {
                assert_eq!(key.encode().as_slice(), bytes);
            }
        }
        2 => {
            if let Ok(bytes) = <&[u8; 48]>::try_from(bytes)
                && let Ok(point) = CiphertextPoint::from_bytes(bytes)
            {
                assert_eq!(&point.to_bytes(), bytes);
            }
        }
        3 => {
            if let Ok(bytes) = <&[u8; 48]>::try_from(bytes)
                && let Ok(release) = Release::from_bytes(bytes)
            {
                assert_eq!(&release.to_bytes(), bytes);
            }
        }
        4 => {
            if let Ok(bytes) = <&[u8; 96]>::try_from(bytes)
                && let Ok(key) = bls::PublicKey::from_bytes(bytes)
            {
                assert_eq!(&key.to_bytes(), bytes);
            }
        }
        5 => {
            if let Ok(bytes) = <&[u8; 48]>::try_from(bytes)
                && let Ok(signature) = bls::Signature::from_bytes(bytes)
            {
                assert_eq!(&signature.to_bytes(), bytes);
            }
        }
        6 => {
            // Any bytes in the place of a real table's.
            static TABLE: OnceLock<Vec<u8>> = OnceLock::new();
            let table = TABLE.get_or_init(|| {
                parameters().prepare(3);
                parameters().export_table(3).expect("just prepared")
            });
            let mut changed = table.clone();
            if let Some((offset, bytes)) = bytes.split_first_chunk::<2>() {
                let start = usize::from(u16::from_be_bytes(*offset)).min(changed.len());
                let end = changed.len().min(start + bytes.len());
                changed[start..end].copy_from_slice(&bytes[..end - start]);
                assert_eq!(parameters().import_table(&changed).is_ok(), changed == *table);
            }
            let _ = parameters().import_table(bytes).is_ok();
        }
        7 => {
            // The backend of this machine decodes and decides as the plain functions do.
            if let Some((c, rest)) = bytes.split_first_chunk::<48>()
                && let Some((proof, e)) = rest.split_first_chunk::<80>()
            {
                let ciphertext = Ciphertext { c: *c, d: [7; 16], e: e.to_vec() };
                let (ad, proof) = ([1; 32], Proof::from_bytes(proof));
                let want = verify_proof(&ad, &ciphertext, &proof);
                let backend: Box<dyn Backend> = auto(1);
                let items = [(&ad, &ciphertext, &proof); 9];
                assert_eq!(backend.verify_proofs(&mut Counter(1), &items), vec![want; 9]);
            }
        }
        _ => {
            if let Ok(bytes) = <&[u8; 576]>::try_from(bytes)
                && let Ok(key) = EncryptionKey::from_bytes(bytes)
            {
                assert_eq!(&key.to_bytes(), bytes);
            }
        }
    }
}
