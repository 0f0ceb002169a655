//! Hooks that are called where they may not be: a panic that names the hook, or a count.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;

use kernel::{Head, Hook};

use crate::board::{Machine, on, section};

type Wrong = fn(&Machine<3>);

unsafe fn nothing(_: NonNull<Head>) {}

/// What is wrong, on a machine with CPUs 0 and 1 online; and which hook is to blame.
const WRONG: [(Hook, Wrong); 17] = [
    (Hook::IdleExit, |machine| machine.kernel.idle_exit()),
    (Hook::UserExit, |machine| machine.kernel.user_exit()),
    (Hook::IdleEnter, |machine| {
        machine.kernel.user_enter();
        machine.kernel.idle_enter();
    }),
    (Hook::ContextSwitch, |machine| {
        machine.kernel.idle_enter();
        machine.kernel.context_switch();
    }),
    (Hook::Tick, |machine| _ = machine.tick(2, false)),
    (Hook::IdleEnter, |machine| {
        on(7, || machine.kernel.idle_enter());
    }),
    (Hook::CpuStarting, |machine| machine.kernel.cpu_starting(2)),
    (Hook::CpuStarting, |machine| machine.kernel.cpu_starting(0)),
    (Hook::CpuStarting, |machine| on(7, || machine.kernel.cpu_starting(7))),
    (Hook::CpuOnline, |machine| machine.kernel.cpu_online(2)),
    (Hook::CpuDying, |machine| _ = machine.kernel.cpu_dying(1)),
    (Hook::CpuDying, |machine| _ = on(2, || machine.kernel.cpu_dying(2))),
    (Hook::CpuDying, |machine| _ = on(7, || machine.kernel.cpu_dying(7))),
    (Hook::CpuDead, |machine| machine.kernel.cpu_dead(1)),
    (Hook::RunCallbacks, |machine| {
        machine.kernel.run_callbacks(1, 1);
    }),
    (Hook::Synchronize, |machine| section(|| _ = machine.kernel.synchronize())),
    (Hook::Call, |machine| {
        let head = Head::new();
        // SAFETY: the first time it is in no queue; the second is what the test is about.
        let call = || _ = unsafe { machine.kernel.call(NonNull::from(&head), nothing) };
        call();
        let second = catch_unwind(AssertUnwindSafe(call));
        // The head is about to go: so it runs.
        machine.jiffies(30, [0, 1]);
        second.unwrap_or_else(|panic| resume_unwind(panic));
    }),
];

#[test]
fn a_debug_build_names_the_hook() {
    for (hook, wrong) in WRONG {
        let machine = Machine::<3>::with(2, |_| {});
        let unwound = catch_unwind(AssertUnwindSafe(|| section_ends(|| wrong(&machine))));
        let message = *unwound.expect_err("it is wrong").downcast::<String>().expect("a message");
        assert!(message.starts_with(&format!("{hook:?}: ")), "{message}");
    }
}

/// A panic leaves the section open: this closes it again.
fn section_ends(what: impl FnOnce()) {
    let result = catch_unwind(AssertUnwindSafe(what));
    crate::board::leave_sections();
    if let Err(panic) = result {
        resume_unwind(panic);
    }
}

#[test]
fn a_release_build_counts_and_goes_on() {
    for (hook, wrong) in WRONG {
        let machine = Machine::<3>::lenient(2);
        wrong(&machine);
        assert_eq!(machine.misuses(), (1, hook));
        // Whatever it was, the machine still works.
        for cpu in [0, 1] {
            on(cpu, || {
                machine.kernel.idle_exit();
                machine.kernel.user_exit();
            });
        }
        machine.free(0);
        assert_eq!(machine.freed_in(30, [0, 1]), 1, "{hook:?}");
    }
}
