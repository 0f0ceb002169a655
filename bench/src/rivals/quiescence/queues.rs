//! The library's queue, and its stack, which has no order but is a pool as well.

use quiescence::collections::{Queue, Stack};

use crate::advise::{Queueing, Value};

impl Queueing for Queue<Value> {
    fn new() -> Self {
        Self::new()
    }

    #[inline]
    fn push(&self, value: Value) {
        self.push(value);
    }

    #[inline]
    fn pop(&self) -> Option<Value> {
        self.pop()
    }

    fn flush(&self) {
        quiescence::barrier();
    }
}

impl Queueing for Stack<Value> {
    fn new() -> Self {
        Self::new()
    }

    #[inline]
    fn push(&self, value: Value) {
        self.push(value);
    }

    #[inline]
    fn pop(&self) -> Option<Value> {
        self.pop()
    }

    fn flush(&self) {
        quiescence::barrier();
    }
}
