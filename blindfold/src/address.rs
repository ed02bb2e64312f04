//! Addresses that people give.

use alloy_primitives::Address;
use anyhow::{Context, Result, ensure};

/// Reads an address. One with capital and small letters says its checksum (EIP-55) by them, which has to be right: what
/// goes to a mistyped address is gone.
pub(crate) fn address(text: &str) -> Result<Address> {
    let address: Address = text.parse().with_context(|| format!("{text} is no address"))?;
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let any = |kind: fn(&char) -> bool| digits.chars().any(|letter| kind(&letter));
    let says_checksum = any(char::is_ascii_lowercase) && any(char::is_ascii_uppercase);
    ensure!(
        !says_checksum || address.to_checksum(None).ends_with(digits),
        "{text} has a wrong checksum (EIP-55): copy the address again, or write it in small letters if it is right"
    );
    Ok(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checksum_is_checked_where_there_is_one() {
        let right = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";
        for text in [right, &right[2..], &right.to_lowercase(), &right[2..].to_uppercase()] {
            assert_eq!(address(text).unwrap().to_string(), right, "{text}");
        }
        let wrong = address("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD").unwrap_err().to_string();
        assert!(wrong.contains("checksum"), "{wrong}");
        for text in ["", "0x", "0x42", "alice"] {
            assert!(address(text).unwrap_err().to_string().contains("no address"), "{text}");
        }
    }
}
