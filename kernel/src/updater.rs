//! What updaters call: callbacks, cookies, waiting, barriers.

use core::cell::RefCell;
use core::ptr::NonNull;

use grace::Cookie;
use grace::limit::Zone;

use crate::front::Kernel;
use crate::head::{Head, Run};
use crate::misuse::{Hook, Refused};
use crate::percpu::PerCpu;
use crate::periods::GracePeriods;
use crate::platform::{CpuSet, Platform};
use crate::sync::{AtomicU32, AtomicU64, Ordering, fence};

impl<P: Platform, const CPUS: usize, E: GracePeriods<CPUS>> Kernel<P, CPUS, E> {
    /// Queues `run` to be called with `head` once every section that has begun has ended. May be
    /// called anywhere except in an NMI or on a CPU that is not online: in a section, in an
    /// interrupt, in a callback, and with the head of that callback.
    ///
    /// It takes no lock and calls no function of the platform except `irq_off` and `this_cpu`, so
    /// its caller may hold any lock. Work that many callbacks require is done at the next tick.
    ///
    /// Returns how near this CPU's callbacks are to its share of
    /// [`Options::callbacks_max`](crate::Options::callbacks_max), or their objects to its share of
    /// [`Options::bytes_max`](crate::Options::bytes_max), whichever is nearer. A caller that gets
    /// [`Zone::Full`] and may sleep calls [`barrier`](Self::barrier) before it queues more; the
    /// barrier returns when all queued callbacks have run.
    /// ([`synchronize_expedited`](Self::synchronize_expedited) would not do: it waits for a grace
    /// period, but not for callbacks.)
    ///
    /// # Errors
    /// [`Refused::Queued`] if the head is found queued, which helps to find a mistake, and is no
    /// permission to try; [`Refused::Offline`] if the CPU is not online: the object then still
    /// belongs to the caller.
    ///
    /// # Safety
    /// `head` is valid, does not move, and is not accessed by other code until `run` is called. It
    /// is not queued. `run` may be called on any CPU, by any thread. The hooks are called where
    /// their documentation says: calling one marked "in no section" inside a section ends grace
    /// periods early.
    ///
    /// # Panics
    /// Instead of returning an error, with [`Options::panics`](crate::Options::panics).
    #[inline(never)]
    pub unsafe fn call(&self, head: NonNull<Head>, run: Run) -> Result<Zone, Refused> {
        let irq = self.platform.irq_off();
        // SAFETY: the caller says that it is valid.
        if !unsafe { head.as_ref() }.is_queued()
            && let Some((cpu, own)) = self.awake(&irq)
        {
            // SAFETY: the caller says that it is valid, and in no queue.
            let is_near = unsafe { cpu.enqueue(own, head, run, &self.near) };
            // What is rare is called last, with nothing to do afterwards: so this needs no stack.
            return if is_near { self.zone(irq) } else { Ok(Zone::Free) };
        }
        drop(irq);
        // SAFETY: the caller's.
        unsafe { self.call_after_misuse(head, run) }
    }

    /// The same if something is wrong: queues if it can be mended.
    ///
    /// # Safety
    /// As for [`call`](Self::call).
    #[cold]
    unsafe fn call_after_misuse(&self, head: NonNull<Head>, run: Run) -> Result<Zone, Refused> {
        // SAFETY: the caller says that it is valid.
        let is_free = !unsafe { head.as_ref() }.is_queued();
        if !self.check(Hook::Call, is_free, "the head is already queued") {
            return Err(Refused::Queued);
        }
        // If a hook was forgotten, the CPU is awake then.
        let queued = self.on_awake(Hook::Call, |at| {
            // SAFETY: the caller says that it is valid, and in no queue.
            unsafe { self.cpus[at.cpu].enqueue(at.own, head, run, &self.near) }
        });
        // If the thread has moved since, it is told of another CPU: once, after a mistake.
        let irq = self.platform.irq_off();
        if queued.is_some() { self.zone(irq) } else { Err(Refused::Offline) }
    }

    /// Whether callbacks of this CPU are ready to run; its worker checks this before it sleeps.
    /// Accesses cache lines of this CPU only. On a CPU that is not online: `false`.
    pub fn has_callbacks(&self) -> bool {
        let irq = self.platform.irq_off();
        self.here(&irq, PerCpu::is_online).is_some_and(|(_, own)| own.tree.callbacks.ready() != 0)
    }

    /// Runs at most `budget` callbacks of `cpu`, which is this CPU, and no more than its share of
    /// those that are ready. Returns whether there are more. The CPU's worker calls it, in no
    /// section, with interrupts on and no lock held. If a callback calls it, or another thread
    /// while it runs, it runs nothing.
    ///
    /// A callback may do everything that the caller may, except wait in [`barrier`](Self::barrier).
    /// A callback that unwinds counts as run.
    pub fn run_callbacks(&self, cpu: usize, budget: u64) -> bool {
        let thread = self.platform.thread();
        let begun = self.on_awake(Hook::RunCallbacks, |at| {
            let runs = self.is_here(Hook::RunCallbacks, cpu) && !self.cpus[cpu].is_run_by(None);
            runs.then(|| {
                // Relaxed: what follows is this thread's own.
                self.cpus[cpu].seen.runner.store(thread.wrapping_add(1), Ordering::Relaxed);
                at.own.tree.batch(&self.options.tree).min(budget)
            })
        });
        let Some(Some(count)) = begun else { return false };
        let running =
            Running { platform: &self.platform, barriers: &self.barriers, cpu: &self.cpus[cpu] };
        for _ in 0..count {
            let next = self.on_awake(Hook::RunCallbacks, |at| {
                // Another that runs them meanwhile may have taken some of these.
                let is_ready =
                    self.is_here(Hook::RunCallbacks, cpu) && at.own.tree.callbacks.ready() != 0;
                let next = if is_ready { at.own.queue.pop() } else { None }?;
                // No later, since only this CPU writes its bytes, and a callback may end on
                // another. So an object is not counted any more while its callback runs.
                // SAFETY: it was queued, and is the callback's from now on.
                let bytes = unsafe { next.0.as_ref() }.bytes();
                self.cpus[at.cpu].add_bytes(bytes.wrapping_neg());
                at.tree().own.took(&self.options.tree, 1);
                Some(next)
            });
            let Some(Some((head, run))) = next else { break };
            let _ran = Ran(&self.cpus[cpu].seen.ran);
            // SAFETY: it was queued with this function, and its grace period has ended.
            unsafe { run(head) };
        }
        drop(running);
        self.on_awake(Hook::RunCallbacks, |at| {
            at.counted();
            at.own.tree.callbacks.ready() != 0
        })
        .unwrap_or(false)
    }

    /// Returns a cookie for a full grace period from here on. Does not begin one.
    pub fn cookie(&self) -> Cookie {
        // Full fence: the caller's update comes before the look [KN-1]. Pairs with the fence with
        // which a grace period begins: one that is not seen here scans after the update.
        fence(Ordering::SeqCst);
        self.told.sequence().snapshot()
    }

    /// Whether the grace period of `cookie` has ended. If so, the caller sees everything that was
    /// done in the sections before it.
    pub fn poll(&self, cookie: Cookie) -> bool {
        self.told.sequence().is_done(cookie)
    }

    /// Waits for a full grace period from here on, unless that of `cookie` has ended. So it waits
    /// for a further one if that of `cookie` has already begun.
    ///
    /// # Errors
    /// [`Refused::InSection`] if the caller may not sleep; [`Refused::Offline`] if its CPU is not
    /// online. It has not waited then.
    ///
    /// # Panics
    /// Instead of returning an error, with [`Options::panics`](crate::Options::panics).
    pub fn wait(&self, cookie: Cookie) -> Result<(), Refused> {
        if self.poll(cookie) { Ok(()) } else { self.synchronize() }
    }

    /// Waits until every section that has begun has ended. On the only CPU that is online it is as
    /// [`synchronize_expedited`](Self::synchronize_expedited), needs no tick, and does not sleep
    /// under Tree RCU.
    ///
    /// # Errors
    /// [`Refused::InSection`] if the caller may not sleep; [`Refused::Offline`] if its CPU is not
    /// online. It has not waited then.
    ///
    /// # Panics
    /// Instead of returning an error, with [`Options::panics`](crate::Options::panics).
    pub fn synchronize(&self) -> Result<(), Refused> {
        self.synchronize_as(false)
    }

    /// Like [`synchronize`](Self::synchronize), but sooner: CPUs that are awake are asked to
    /// reschedule, and the caller checks until all have, as often as [`Platform::wait`] polls. Idle
    /// CPUs and CPUs in user mode are not disturbed. Under those
    /// [variants](crate::engine::tree::Variant) of Tree RCU in which no CPU helps in its scheduler
    /// (3.15, `V0`), or in which its tick must take note first (`Today`), it lasts until those CPUs
    /// have ticked.
    ///
    /// # Errors
    /// [`Refused::InSection`] if the caller may not sleep; [`Refused::Offline`] if its CPU is not
    /// online. It has not waited then.
    ///
    /// # Panics
    /// Instead of returning an error, with [`Options::panics`](crate::Options::panics).
    pub fn synchronize_expedited(&self) -> Result<(), Refused> {
        self.synchronize_as(true)
    }

    /// Asks for a full grace period, which this CPU then looks after, and waits for its end.
    fn synchronize_as(&self, is_expedited: bool) -> Result<(), Refused> {
        self.may_sleep(Hook::Synchronize)?;
        let started = self.on_awake(Hook::Synchronize, |at| {
            let (cookie, is_alone) =
                at.locked(|machine, tree| (machine.periods.want(tree), machine.online == 1));
            at.own.tree.wanted = cookie;
            (cookie, is_alone)
        });
        let (cookie, is_alone) = started.ok_or(Refused::Offline)?;
        let polls = is_expedited || is_alone;
        let asked = RefCell::new((self.told.sequence(), CpuSet::EMPTY));
        let done = || {
            if polls && !self.poll(cookie) {
                self.on_awake(Hook::Synchronize, |at| at.expedite(&mut asked.borrow_mut()));
            }
            self.poll(cookie)
        };
        // As a kernel boots perhaps no thread can sleep yet. A grace period may be in progress.
        if !(is_alone && (done() || done())) {
            self.platform.wait(&done, polls);
        }
        Ok(())
    }

    fn may_sleep(&self, hook: Hook) -> Result<(), Refused> {
        let may = self.platform.is_preemptible();
        let is_right = self.check(hook, may, "the caller may not sleep");
        if is_right { Ok(()) } else { Err(Refused::InSection) }
    }

    /// Waits until every callback queued so far, on any CPU, has run. Do not call it while holding
    /// a lock that callbacks take, also those that are queued meanwhile: they may run before the
    /// caller is woken.
    ///
    /// # Errors
    /// [`Refused`] if the caller may not sleep, or is a callback. It has not waited then.
    ///
    /// # Panics
    /// Instead of returning an error, with [`Options::panics`](crate::Options::panics).
    pub fn barrier(&self) -> Result<(), Refused> {
        self.may_sleep(Hook::Barrier)?;
        let thread = self.platform.thread();
        self.on_awake(Hook::Barrier, |_| {}).ok_or(Refused::Offline)?;
        let runs = self.cpus.iter().any(|cpu| cpu.is_run_by(Some(thread)));
        if !self.check(Hook::Barrier, !runs, "called by a callback, for which it would wait") {
            return Err(Refused::InCallback);
        }
        // Full fence, with the one of `Running` [KN-10]: who has run a callback sees that somebody
        // waits, or had counted it before the first look below.
        self.barriers.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        loop {
            // Acquire: pairs with the Release of a move. One that comes later is seen below.
            let moves = self.moves.load(Ordering::Acquire);
            for cpu in &self.cpus {
                // Acquire: pairs with the Release of a move, if that wrote it last; a move that is
                // missed all the same is seen at the end.
                let queued = cpu.seen.queued.load(Ordering::Acquire);
                // Acquire: pairs with the Release of `Ran` [KN-5]; the callbacks have run.
                let left = || queued.wrapping_sub(cpu.seen.ran.load(Ordering::Acquire));
                self.platform.wait(&|| left() as i64 <= 0, false);
            }
            // Acquire: a count that a move has satisfied comes after the move.
            if self.moves.load(Ordering::Acquire) == moves {
                break;
            }
        }
        self.barriers.fetch_sub(1, Ordering::Relaxed);
        Ok(())
    }
}

/// A callback that has run when this is dropped, also by unwinding.
pub(crate) struct Ran<'a>(pub(crate) &'a AtomicU64);

impl Drop for Ran<'_> {
    fn drop(&mut self) {
        // Relaxed: one thread at a time runs callbacks of a CPU, or of a domain. Release: pairs
        // with the Acquire of a barrier [KN-5] [KN-8].
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
    }
}

/// The callbacks of a CPU are being run, by one thread.
struct Running<'a, P: Platform> {
    platform: &'a P,
    barriers: &'a AtomicU32,
    cpu: &'a PerCpu,
}

impl<P: Platform> Drop for Running<'_, P> {
    fn drop(&mut self) {
        // On whatever CPU a callback has left this thread. Release: pairs with the Acquire of
        // `PerCpu::is_run_by`.
        self.cpu.seen.runner.store(0, Ordering::Release);
        // Full fence: the count comes before the look [KN-10]. Pairs with the one of `barrier`.
        fence(Ordering::SeqCst);
        if self.barriers.load(Ordering::Relaxed) != 0 {
            let _irq = self.platform.irq_off();
            self.platform.wake_waiters();
        }
    }
}
