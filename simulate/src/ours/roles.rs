//! What threads do, step by step.

use grace::Urgency;
use grace::batch::TEND_EVERY;
use grace::driver::MOMENT_NS;
use grace::limit::Amount;

use super::callbacks::{Contents, Tend};
use super::costs::ns;
use super::cpus::FOREVER;
use super::driving::Wait;
use super::liburcu::Synchronize;
use super::options::{Algorithm, Role};
use super::readers::ReaderId;
use super::report::Spending;
use super::world::{Frame, Next, ThreadId, World};
use crate::events::Time;

/// A turn through what a thread does.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoleFrame {
    step: Step,
    began: Time,
    urgency: Urgency,
    /// Updates of this burst that are left.
    left: u32,
    /// Updates that are queued one by one until the thread looks at what is due.
    batch: u32,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Begins,
    Registers,
    Reads,
    EndsSpell,
    Unregisters,
    Works,
    Waited,
    Adds,
    MakesRoom,
    NapsForRoom,
    Tends,
}

impl RoleFrame {
    pub(super) const NEW: Self =
        Self { step: Step::Begins, began: 0, urgency: Urgency::Normal, left: 0, batch: 0 };
}

impl World<'_> {
    pub(super) fn role_step(&mut self, id: ThreadId, frame: &mut RoleFrame) -> Next {
        let Some(role) = self.threads[id].role else { return Next::Sleep };
        match role {
            Role::Idle => Next::Sleep,
            Role::Reads { run_ns, sleep_ns, .. } | Role::Qsbr { run_ns, sleep_ns, .. } => {
                self.reader_step(id, frame, [run_ns, sleep_ns])
            }
            Role::Blocks { section_ns, apart_ns } => {
                self.blocking_step(id, frame, [section_ns, apart_ns])
            }
            Role::Comes { life_ns, apart_ns, .. } => {
                self.coming_step(id, frame, [life_ns, apart_ns])
            }
            Role::Waits { work_ns, expedited_ppm, sleeps, .. } => {
                self.waiting_step(id, frame, (work_ns, sleeps), expedited_ppm)
            }
            Role::Retires { work_ns, bytes, burst, sleep_ns } => {
                self.adding_step(id, frame, Contents::Objects, (work_ns, bytes, burst, sleep_ns))
            }
            Role::Calls { work_ns, bytes, burst, sleep_ns } => {
                self.adding_step(id, frame, Contents::Closures, (work_ns, bytes, burst, sleep_ns))
            }
        }
    }

    fn draw(&mut self, id: ThreadId, mean: Time) -> Time {
        self.threads[id].random.exponential(mean)
    }

    /// The reader of a thread that has one.
    fn reader_of(&self, id: ThreadId) -> ReaderId {
        self.threads[id].reader.unwrap_or_else(|| unreachable!("threads that read have a reader"))
    }

    fn reader_step(&mut self, id: ThreadId, frame: &mut RoleFrame, means: [Time; 2]) -> Next {
        let [run_ns, sleep_ns] = means;
        let now = self.events.now();
        let reader = self.reader_of(id);
        match frame.step {
            Step::Begins => {
                self.readers[reader].begin_spell(now);
                if run_ns == 0 {
                    return Next::Spend(FOREVER, Spending::Own);
                }
                frame.step = Step::EndsSpell;
                Next::Spend(self.draw(id, run_ns), Spending::Own)
            }
            Step::EndsSpell => match self.readers[reader].end_spell(now) {
                0 => {
                    self.note_leave(reader);
                    frame.step = Step::Begins;
                    Next::SleepFor(self.draw(id, sleep_ns))
                }
                left => Next::Spend(left, Spending::Own),
            },
            _ => Next::Sleep,
        }
    }

    fn blocking_step(&mut self, id: ThreadId, frame: &mut RoleFrame, means: [Time; 2]) -> Next {
        let [section_ns, apart_ns] = means;
        let now = self.events.now();
        let reader = self.reader_of(id);
        match frame.step {
            Step::Begins => {
                frame.step = Step::Reads;
                self.readers[reader].leave();
                self.note_leave(reader);
                Next::SleepFor(self.draw(id, apart_ns))
            }
            _ => {
                frame.step = Step::Begins;
                self.readers[reader].enter(now);
                Next::SleepFor(self.draw(id, section_ns))
            }
        }
    }

    fn coming_step(&mut self, id: ThreadId, frame: &mut RoleFrame, means: [Time; 2]) -> Next {
        let [life_ns, apart_ns] = means;
        let now = self.events.now();
        let reader = self.reader_of(id);
        let costs = &self.options.costs;
        match frame.step {
            Step::Begins => {
                frame.step = Step::Registers;
                self.counted.threads_started += 1;
                // A reader that registers waits for the scan in progress.
                let locked_ns = self.domain.registry_until.saturating_sub(now);
                let taken_ns = ns(costs.start) + costs.register_ns();
                Next::Spend(taken_ns.max(locked_ns + costs.register_ns()), Spending::Own)
            }
            Step::Registers => {
                frame.step = Step::EndsSpell;
                self.register(reader);
                self.readers[reader].begin_spell(now);
                Next::Spend(self.draw(id, life_ns), Spending::Own)
            }
            Step::EndsSpell => match self.readers[reader].end_spell(now) {
                0 => {
                    self.note_leave(reader);
                    frame.step = Step::Unregisters;
                    let locked_ns = self.domain.registry_until.saturating_sub(now);
                    Next::Spend(locked_ns + costs.register_ns(), Spending::Own)
                }
                left => Next::Spend(left, Spending::Own),
            },
            _ => {
                frame.step = Step::Begins;
                self.unregister(reader);
                Next::SleepFor(self.draw(id, apart_ns))
            }
        }
    }

    fn waiting_step(
        &mut self,
        id: ThreadId,
        frame: &mut RoleFrame,
        (work_ns, sleeps): (Time, bool),
        expedited_ppm: u32,
    ) -> Next {
        match frame.step {
            Step::Begins => {
                frame.step = Step::Works;
                match self.draw(id, work_ns) {
                    ns if sleeps => Next::SleepFor(ns),
                    ns => Next::Spend(ns, Spending::Own),
                }
            }
            Step::Works => {
                frame.step = Step::Waited;
                frame.began = self.events.now();
                let expedited = self.threads[id].random.chance_ppm(expedited_ppm);
                frame.urgency = if expedited { Urgency::Expedited } else { Urgency::Normal };
                Next::Call(self.waits(frame.urgency))
            }
            _ => {
                frame.step = Step::Begins;
                let ns = self.events.now() - frame.began;
                match frame.urgency {
                    Urgency::Expedited => self.times.waits_expedited.record(ns),
                    _ => self.times.waits.record(ns),
                }
                self.counted.updates += 1;
                Next::Spend(0, Spending::Own)
            }
        }
    }

    /// Waiting for a grace period.
    pub(super) fn waits(&self, urgency: Urgency) -> Frame {
        match self.options.algorithm {
            Algorithm::Library { .. } => Frame::Wait(Wait::new(urgency)),
            Algorithm::Liburcu => Frame::Synchronize(Synchronize::NEW),
        }
    }

    fn adding_step(
        &mut self,
        id: ThreadId,
        frame: &mut RoleFrame,
        contents: Contents,
        (work_ns, bytes, burst, sleep_ns): (Time, u64, u32, Time),
    ) -> Next {
        match frame.step {
            Step::Begins => {
                frame.left = burst;
                frame.step = Step::Works;
                Next::Spend(0, Spending::Own)
            }
            Step::Works => {
                if burst != 0 && frame.left == 0 {
                    frame.step = Step::Begins;
                    return Next::SleepFor(self.draw(id, sleep_ns));
                }
                let batch = TEND_EVERY + 1;
                frame.batch = if burst == 0 { batch } else { batch.min(frame.left) };
                frame.left = frame.left.saturating_sub(frame.batch);
                frame.step = Step::Adds;
                let work_ns = work_ns * u64::from(frame.batch);
                let ns = self.threads[id].random.about(work_ns);
                Next::Spend(ns + self.options.costs.queue_ns(frame.batch.into()), Spending::Own)
            }
            Step::Adds => self.add_batch(id, frame, contents, Amount::object(bytes)),
            Step::MakesRoom => {
                let waited_ns = self.events.now() - frame.began;
                if self.admit(id, Amount::object(bytes)) {
                    self.add_callback(id, bytes);
                } else if contents == Contents::Objects {
                    self.count_freed(); // its grace period is over
                } else {
                    // The worker makes room; meanwhile the thread naps.
                    self.hurry_worker();
                    frame.step = Step::NapsForRoom;
                    return Next::SleepFor(MOMENT_NS);
                }
                self.times.waits_at_limit.record(waited_ns);
                self.counted.updates += 1;
                frame.batch -= 1;
                frame.step = Step::Adds;
                Next::Spend(0, Spending::Own)
            }
            Step::NapsForRoom => {
                frame.step = Step::MakesRoom;
                Next::Call(self.at_limit(id, contents))
            }
            _ => {
                frame.step = Step::Works;
                Next::Spend(0, Spending::Own)
            }
        }
    }

    /// Queues the callbacks of a few updates; where there is no room, the rest comes later.
    fn add_batch(
        &mut self,
        id: ThreadId,
        frame: &mut RoleFrame,
        contents: Contents,
        object: Amount,
    ) -> Next {
        while frame.batch != 0 {
            if !self.admit(id, object) {
                frame.step = Step::MakesRoom;
                frame.began = self.events.now();
                return Next::Call(self.at_limit(id, contents));
            }
            self.add_callback(id, object.bytes);
            self.counted.updates += 1;
            frame.batch -= 1;
        }
        self.announce_callbacks();
        frame.step = Step::Tends;
        match self.options.algorithm {
            Algorithm::Library { .. } => Next::Call(Frame::Tend(Tend::new(contents))),
            Algorithm::Liburcu => Next::Spend(0, Spending::Own),
        }
    }
}
