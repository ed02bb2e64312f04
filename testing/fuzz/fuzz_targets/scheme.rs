//! Points, keys and files of the scheme: what decodes encodes to the same bytes, and nothing panics.
#![no_main]

use blindfold_bte::{CiphertextPoint, EncryptionKey, MemberKey, Parameters, Release, bls};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, &[u8])| {
    let (kind, bytes) = input;
    match kind % 7 {
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
        _ => {
            if let Ok(bytes) = <&[u8; 576]>::try_from(bytes)
                && let Ok(key) = EncryptionKey::from_bytes(bytes)
            {
                assert_eq!(&key.to_bytes(), bytes);
            }
        }
    }
});
