//! The standard library's channel: many senders, and one receiver, which takers share by a mutex.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};

use super::Rival;
use crate::shapes::{Queueing, Value};

pub(super) const RIVALS: &[Rival] = &[Rival::new("std-mpsc").queue::<Channel>()];

struct Channel {
    sender: Sender<Value>,
    receiver: Mutex<Receiver<Value>>,
}

impl Queueing for Channel {
    fn new() -> Self {
        let (sender, receiver) = channel();
        Self { sender, receiver: Mutex::new(receiver) }
    }

    #[inline]
    fn push(&self, value: Value) {
        self.sender.send(value).expect("the receiver is in the same structure");
    }

    #[inline]
    fn pop(&self) -> Option<Value> {
        self.receiver.lock().unwrap_or_else(PoisonError::into_inner).try_recv().ok()
    }
}
