//! An engine that costs nothing and waits for no reader: a row that it passes says nothing about a
//! real engine.

use kernel::engine::{Callback, Engine, Host, Mode};

/// Runs each callback where and when it is queued.
#[derive(Debug)]
pub(super) struct AtOnce;

impl Engine for AtOnce {
    fn queue(&mut self, cpu: usize, _: Callback, host: &mut dyn Host) {
        host.invoke(cpu, 1);
    }

    fn context_switch(&mut self, _: usize, _: &mut dyn Host) {}
    fn tick(&mut self, _: usize, _: Mode, _: &mut dyn Host) {}
    fn softirq(&mut self, _: usize, _: &mut dyn Host) {}
    fn enter_eqs(&mut self, _: usize, _: &mut dyn Host) {}
    fn exit_eqs(&mut self, _: usize, _: &mut dyn Host) {}

    fn is_holdout(&self, _: usize, _: usize) -> bool {
        false
    }

    fn waiting(&self, _: usize) -> u64 {
        0
    }
}
