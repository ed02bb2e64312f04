//! Amounts in settings.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Wei: a number, or a string of decimal digits, since TOML's numbers end at 9.2 ether.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wei(pub u128);

impl Serialize for Wei {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Wei {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "wei, as a number or a string of decimal digits")]
        enum Form {
            Number(u64),
            Text(String),
        }
        match Form::deserialize(deserializer)? {
            Form::Number(wei) => Ok(Self(wei.into())),
            Form::Text(text) => text.parse().map(Self).map_err(serde::de::Error::custom),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_digits_are_read_and_nothing_else() {
        let read = |text: &str| serde_json::from_str::<Wei>(text).ok();
        assert_eq!(read("5"), Some(Wei(5)));
        let large = Wei(20_000_000_000_000_000_000_000);
        assert_eq!(read(&serde_json::to_string(&large).unwrap()), Some(large));
        for bad in ["-1", "1.5", "\"\"", "\"1 ether\"", "\"-1\"", "null"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
