//! What threads do.

use grace::Urgency;
use grace::batch::TEND_EVERY;
use grace::driver::MOMENT_NS;
use grace::limit::Amount;

use super::callbacks::Contents;
use super::costs::ns;
use super::cpus::FOREVER;
use super::options::{Algorithm, Role};
use super::readers::ReaderId;
use super::report::Spending;
use super::world::Me;
use crate::events::Time;

impl Me<'_, '_> {
    pub(super) async fn play(self, role: Role) {
        match role {
            Role::Idle => self.sleep().await,
            Role::Reads { run_ns, sleep_ns, .. } | Role::Qsbr { run_ns, sleep_ns, .. } => {
                self.read(run_ns, sleep_ns).await;
            }
            Role::Blocks { section_ns, apart_ns } => self.block(section_ns, apart_ns).await,
            Role::Comes { life_ns, apart_ns, .. } => self.come_and_go(life_ns, apart_ns).await,
            Role::Waits { work_ns, expedited_ppm, sleeps, .. } => {
                self.update(work_ns, expedited_ppm, sleeps).await;
            }
            Role::Retires { work_ns, bytes, burst, sleep_ns } => {
                self.add(Contents::Objects, work_ns, bytes, burst, sleep_ns).await;
            }
            Role::Calls { work_ns, bytes, burst, sleep_ns } => {
                self.add(Contents::Closures, work_ns, bytes, burst, sleep_ns).await;
            }
        }
    }

    fn draw(self, mean: Time) -> Time {
        self.world().threads[self.id].random.exponential(mean)
    }

    /// The reader of a thread that has one.
    fn reader(self) -> ReaderId {
        let reader = self.world().threads[self.id].reader;
        reader.unwrap_or_else(|| unreachable!("threads that read have a reader"))
    }

    async fn read(self, run_ns: Time, sleep_ns: Time) {
        let reader = self.reader();
        loop {
            let now = self.now();
            self.world().readers[reader].begin_spell(now);
            let run_ns = if run_ns == 0 { FOREVER } else { self.draw(run_ns) };
            self.spend(run_ns, Spending::Own).await;
            self.end_spell(reader).await;
            self.sleep_for(self.draw(sleep_ns)).await;
        }
    }

    /// Ends a spell of reading, in which it is in a section perhaps.
    async fn end_spell(self, reader: ReaderId) {
        loop {
            let now = self.now();
            let left = self.world().readers[reader].end_spell(now);
            if left == 0 {
                return self.world().note_leave(reader);
            }
            self.spend(left, Spending::Own).await;
        }
    }

    async fn block(self, section_ns: Time, apart_ns: Time) {
        let reader = self.reader();
        loop {
            self.world().readers[reader].leave();
            self.world().note_leave(reader);
            self.sleep_for(self.draw(apart_ns)).await;
            let now = self.now();
            self.world().readers[reader].enter(now);
            self.sleep_for(self.draw(section_ns)).await;
        }
    }

    async fn come_and_go(self, life_ns: Time, apart_ns: Time) {
        let (reader, register_ns) = (self.reader(), self.costs().register_ns());
        // A reader that registers waits for the scan in progress.
        let locked_ns = || {
            let world = self.world();
            world.domain.registry_until.saturating_sub(world.events.now())
        };
        loop {
            self.world().counted.threads_started += 1;
            let start_ns = ns(self.costs().start);
            self.spend(start_ns.max(locked_ns()) + register_ns, Spending::Own).await;
            let now = self.now();
            self.world().register(reader);
            self.world().readers[reader].begin_spell(now);
            self.spend(self.draw(life_ns), Spending::Own).await;
            self.end_spell(reader).await;
            self.spend(locked_ns() + register_ns, Spending::Own).await;
            self.world().unregister(reader);
            self.sleep_for(self.draw(apart_ns)).await;
        }
    }

    async fn update(self, work_ns: Time, expedited_ppm: u32, sleeps: bool) {
        loop {
            match self.draw(work_ns) {
                ns if sleeps => self.sleep_for(ns).await,
                ns => self.spend(ns, Spending::Own).await,
            }
            let began = self.now();
            let hurries = self.world().threads[self.id].random.chance_ppm(expedited_ppm);
            self.waits(if hurries { Urgency::Expedited } else { Urgency::Normal }).await;
            let waited_ns = self.now() - began;
            {
                let mut world = self.world();
                match hurries {
                    true => world.times.waits_expedited.record(waited_ns),
                    false => world.times.waits.record(waited_ns),
                }
                world.counted.updates += 1;
            }
            // Whom it woke.
            self.spend(0, Spending::Own).await;
        }
    }

    /// Waits for a grace period.
    pub(super) async fn waits(self, urgency: Urgency) {
        match self.options().algorithm {
            Algorithm::Library { .. } => self.waits_in_library(urgency).await,
            Algorithm::Liburcu => self.synchronize().await,
        }
    }

    async fn add(self, contents: Contents, work_ns: Time, bytes: u64, burst: u32, sleep_ns: Time) {
        let mut left = burst;
        loop {
            if burst != 0 && left == 0 {
                self.sleep_for(self.draw(sleep_ns)).await;
                left = burst;
            }
            let batch = TEND_EVERY + 1;
            let batch = if burst == 0 { batch } else { batch.min(left) };
            left = left.saturating_sub(batch);
            let work_ns = work_ns * u64::from(batch);
            let ns = self.world().threads[self.id].random.about(work_ns);
            self.spend(ns + self.costs().queue_ns(batch.into()), Spending::Own).await;
            for _ in 0..batch {
                let is_admitted = self.world().admit(self.id, Amount::object(bytes));
                match is_admitted {
                    true => self.world().add_callback(self.id, bytes),
                    false => self.make_room(contents, bytes).await,
                }
                self.world().counted.updates += 1;
                if !is_admitted {
                    self.spend(0, Spending::Own).await;
                }
            }
            self.world().announce_callbacks();
            if let Algorithm::Library { .. } = self.options().algorithm {
                self.tend(contents).await;
            }
            // Whom it woke.
            self.spend(0, Spending::Own).await;
        }
    }

    /// Adds a callback for which there is no room yet.
    async fn make_room(self, contents: Contents, bytes: u64) {
        let began = self.now();
        loop {
            let runs = self.world().at_limit(self.id, contents);
            self.settle(runs).await;
            let is_admitted = self.world().admit(self.id, Amount::object(bytes));
            if is_admitted {
                self.world().add_callback(self.id, bytes);
                break;
            }
            if contents == Contents::Objects {
                self.world().count_freed(); // its grace period is over
                break;
            }
            // The worker makes room; meanwhile the thread naps.
            self.world().hurry_worker();
            self.sleep_for(MOMENT_NS).await;
        }
        let waited_ns = self.now() - began;
        self.world().times.waits_at_limit.record(waited_ns);
    }
}
