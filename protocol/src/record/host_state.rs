//! Opaque state of the host, kept in every record.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Bytes of the host's own, such as the state of an optimizer. Copies share them.
///
/// ```
/// use mingle_protocol::record::HostState;
///
/// let state = HostState::from(vec![1, 2, 3]);
/// assert_eq!(state[1..], [2, 3]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostState(Arc<[u8]>);

impl From<Vec<u8>> for HostState {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }
}

impl Deref for HostState {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Serialize for HostState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self)
    }
}

impl<'de> Deserialize<'de> for HostState {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(Bytes)
    }
}

/// Takes bytes from a format that has them, and a list of numbers from one that has not.
struct Bytes;

impl<'de> Visitor<'de> for Bytes {
    type Value = HostState;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bytes")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<HostState, E> {
        Ok(HostState(bytes.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<HostState, A::Error> {
        let mut bytes = Vec::new();
        while let Some(byte) = list.next_element()? {
            bytes.push(byte);
        }
        Ok(bytes.into())
    }
}
