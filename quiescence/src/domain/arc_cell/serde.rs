//! Serialises a cell as its value.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{ArcCell, ArcCellAny, ArcCellOption, RefCnt};
use crate::reclaim::weigh::Weigh;

impl<P: RefCnt<Target: Serialize>> Serialize for ArcCellAny<P> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.load().serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de> + Weigh + Send + Sync + 'static> Deserialize<'de> for ArcCell<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(Self::from_pointee)
    }
}

impl<'de, T: Deserialize<'de> + Weigh + Send + Sync + 'static> Deserialize<'de>
    for ArcCellOption<T>
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::<T>::deserialize(deserializer).map(Self::from_pointee)
    }
}
