//! JSON whose objects keep the order of their fields, so that the document reads as it was put together.

use serde::{Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

/// A part of the document.
#[derive(Clone, Debug)]
pub enum Node {
    /// Anything, as it stands: on one line.
    Raw(Box<RawValue>),
    /// A list, an element a line.
    List(Vec<Node>),
    /// An object, a field a line.
    Object(Vec<(String, Node)>),
}

impl Node {
    /// Any value on one line.
    pub fn raw(value: impl Serialize) -> Self {
        Self::Raw(to_raw_value(&value).expect("only text is a key here"))
    }

    /// An object with a field more, where there is a value for it.
    #[must_use]
    pub fn with(mut self, key: &str, value: Option<impl Into<Node>>) -> Self {
        if let Some(value) = value {
            let Self::Object(fields) = &mut self else { panic!("only an object has a field {key}") };
            fields.push((key.to_owned(), value.into()));
        }
        self
    }
}

impl<T: Into<Node>> From<Vec<T>> for Node {
    fn from(items: Vec<T>) -> Self {
        Self::List(items.into_iter().map(Into::into).collect())
    }
}

macro_rules! scalars {
    ($($scalar:ty),*) => {$(
        impl From<$scalar> for Node {
            fn from(value: $scalar) -> Self {
                Self::raw(value)
            }
        }
    )*};
}
scalars!(&str, String, bool, i32, u64);

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Raw(value) => value.serialize(serializer),
            Self::List(items) => items.serialize(serializer),
            Self::Object(fields) => serializer.collect_map(fields.iter().map(|(key, value)| (key, value))),
        }
    }
}

/// An object of the document.
macro_rules! object {
    ($($key:literal: $value:expr),* $(,)?) => {
        $crate::json::Node::Object(vec![$(($key.to_owned(), $crate::json::Node::from($value))),*])
    };
}
pub(crate) use object;
