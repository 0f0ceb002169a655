//! The steps that can be removed: each with its name, and what must notice that it is missing.
//!
//! This is the only list of them. Torture, loom's driver, the tests, the explorer and
//! `cargo xtask mutants` take names and catchers from here. A name is that of `docs/ORDERINGS.md`
//! where the step is one of an ordering edge.

use super::catchers::{flavors, library};
use super::{Catcher, Place};
use Catcher::{CTorture, Explorer, Loom, Test, Torture, TortureOn};

macro_rules! mutants {
    ($($(#[doc = $doc:literal])+ $mutant:ident $name:literal [$($catcher:expr),+ $(,)?];)*) => {
        /// A step that can be removed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Mutant {
            $($(#[doc = $doc])+ $mutant,)*
        }

        impl Mutant {
            /// All of them, in the order of the registry.
            pub const ALL: &'static [Self] = &[$(Self::$mutant,)*];

            /// The name.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$mutant => $name,)*
                }
            }

            /// What is left out, in a sentence.
            pub const fn about(self) -> &'static str {
                match self {
                    $(Self::$mutant => concat!($($doc,)+),)*
                }
            }

            /// What must notice.
            pub const fn catchers(self) -> &'static [Catcher] {
                match self {
                    $(Self::$mutant => const { &[$($catcher),+] },)*
                }
            }
        }
    };
}

mutants! {
    // Grace periods.
    /// The grace period does not look at the readers.
    NoScan "no-scan" [
        Explorer, Torture("readers"), CTorture,
        Loom(&["loom_tests::threads::one_section_one_grace_period"]),
        Test(library("liburcu_readers", STRESS).in_one_of(20)),
    ];
    /// The scan passes over the reader registered last.
    SkipLastReader "skip-last-reader" [
        Torture("readers"), CTorture,
        Loom(&["loom_tests::threads::one_section_one_grace_period"]),
        Test(library("liburcu_readers", STRESS).in_one_of(20)),
    ];
    /// Readers are not entered into the registry's list.
    NoRegistration "no-registration" [
        Explorer, Torture("readers"),
        Loom(&["loom_tests::threads::one_section_one_grace_period"]),
        Test(library("liburcu_readers", STRESS).in_one_of(20)),
    ];
    /// A holdout does not wake the sleeping updater.
    NoWakeUp "no-wake-up" [
        Explorer, Torture("readers"), Loom(&["loom_tests::threads::one_section_one_grace_period"]),
    ];
    /// The driver sleeps without looking again after it has marked the holdouts.
    NoSecondLook "no-second-look" [
        Explorer, Torture("readers"), Loom(&["loom_tests::threads::one_section_one_grace_period"]),
    ];
    /// The next owner of a slot clears the mark that a sleeper has set there.
    ForgottenMark "forgotten-mark" [
        Explorer, Torture("readers"),
        Loom(&["loom_tests::threads::a_slot_changes_hands_while_the_driver_marks_it"]),
    ];
    /// One phase bit in place of a number, and one pass.
    PhaseBit "phase-bit" [Explorer, Torture("readers")];
    /// A nested unlock ends the outer section as well.
    NestedUnlockEnds "nested-unlock-ends" [
        Explorer, Torture("readers"), Loom(&["loom_tests::threads::nested_sections"]),
    ];
    /// A request is served by the grace period in progress.
    ServedByThePresent "served-by-the-present" [
        Explorer, Torture("readers"), Loom(&["loom_tests::threads::a_request_in_mid_grace_period"]),
    ];
    /// The driver takes the domain to have no other reader.
    AlwaysAlone "always-alone" [
        Explorer, Torture("readers"),
        Loom(&[
            "loom_tests::threads::one_section_one_grace_period",
            "loom_tests::threads::a_reader_that_may_be_alone_beside_one_that_comes",
        ]),
    ];
    /// A driver takes its own readers to be quiescent, also where a waker has begun a section.
    OwnSectionUnseen "own-section-unseen" [
        Loom(&["loom_tests::sleepers::a_waker_begins_a_section_on_the_drivers_thread"]),
        Test(library("regressions", "wakers::a_section_that_a_waker_begins_is_waited_for")),
    ];
    /// A QSBR reader that may be alone does not look whether another thread drives.
    AloneBesideDriver "alone-beside-driver" [
        Loom(&["loom_tests::threads::a_reader_that_may_be_alone_beside_another_updater"]),
    ];
    /// A second synchronizer that finds a driver at work does not wait.
    NoSharing "no-sharing" [
        Torture("readers"), Loom(&["loom_tests::threads::a_request_in_mid_grace_period"]),
    ];
    /// The heavy fence does nothing.
    NoHeavyFence "no-heavy-fence" [
        Explorer, Loom(&["loom_tests::threads::one_section_one_grace_period"]),
    ];
    /// Readers that are to execute full fences execute none where a section begins.
    NoReaderFence "no-reader-fence" [
        Loom(&["loom_tests::threads::a_domain_whose_readers_fence"]),
    ];
    /// The driver executes no fence of its own where its readers' are full ones.
    NoOwnFence "no-own-fence" [Loom(&["loom_tests::threads::a_domain_whose_readers_fence"])];
    /// The light fences do nothing.
    NoLightFence "no-light-fence" [Loom(&["loom_tests::threads::one_section_one_grace_period"])];
    /// A section's end is stored with relaxed order.
    RelaxedUnlock "relaxed-unlock" [
        Explorer, Loom(&["loom_tests::threads::two_updaters_share_and_are_both_served"]),
    ];
    /// A section's begin is stored with relaxed order, so that it hides the end of the one before.
    RelaxedLock "relaxed-lock" [
        Explorer, Loom(&["loom_tests::threads::a_section_hides_the_end_of_the_one_before"]),
    ];
    // The relay of QSBR readers: the engine `token`.
    /// A reader that hands the token on does not check a second time which reader it has it from.
    NoSecondSource "no-second-source" [Loom(&["loom_tests::relay::a_relay_that_changes"])];
    /// A reader that comes online in a relay records the current number.
    OnlineAsPassed "online-as-passed" [Loom(&["loom_tests::relay::a_relay_of_two"])];
    /// A reader that comes online in a relay does not take that for a quiescent state.
    OnlineForGood "online-for-good" [
        Loom(&["loom_tests::relay::a_relay_of_one_that_only_comes_and_goes"])
    ];
    /// The updater does not let through the readers that copy from one that is offline.
    NoPassingOver "no-passing-over" [Loom(&["loom_tests::relay::a_relay_with_a_gap"])];
    // Sleep beside liburcu readers.
    /// The driver says without a fence that it sleeps until liburcu readers leave.
    NoLiburcuFence "no-liburcu-fence" [
        Loom(&["loom_tests::liburcu::a_driver_sleeps_beside_a_liburcu_reader"]),
    ];
    /// The driver does not scan again before it sleeps until liburcu readers leave.
    NoLiburcuLook "no-liburcu-look" [
        Loom(&["loom_tests::liburcu::a_driver_sleeps_beside_a_liburcu_reader"]),
        Test(library("liburcu_readers", LEAVES).hangs()),
    ];
    /// Liburcu readers are sent the signal of reports also where they sleep.
    SignalToSleepers "signal-to-sleepers" [
        Test(flavors("sleepers::a_report_does_not_disturb_a_reader_that_sleeps")),
    ];
    // The hand-over from one driver to another.
    /// A superseded driver reports what it has found.
    SupersededDriverReports "superseded-driver-reports" [
        Explorer, Loom(&["loom_tests::threads::a_waiter_takes_a_drivers_place"]),
    ];
    /// A superseded driver scans and marks holdouts.
    SupersededDriverMarks "superseded-driver-marks" [
        Explorer, Loom(&["loom_tests::threads::a_waiter_takes_a_drivers_place"]),
    ];
    /// A waiter that takes a driver's place leaves the marks of that one.
    MarksOutliveTheirDriver "marks-outlive-their-driver" [
        Explorer, Loom(&["loom_tests::threads::a_waiter_takes_a_drivers_place"]),
    ];
    /// A waiter that takes a driver's place does not end its sleep.
    SilentTakeOver "silent-take-over" [
        Test(library("lib", ASLEEP).hangs()),
    ];
    /// Waiters do not take a stalled driver's place.
    NoTakeOver "no-take-over" [
        Test(stalled("starved_driver::a_driver_that_is_stopped_in_its_sleep_holds_nobody_up")),
        Test(stalled("starved_driver::stopped::after_its_fence")),
        Test(stalled("starved_driver::stopped::before_it_marks")),
        Test(stalled("starved_driver::stopped::after_it_has_marked")),
        Test(stalled("starved_driver::stopped::between_the_sums_of_a_sleepable_domain")),
        Test(stalled("starved_driver::stopped::while_callbacks_wait_for_it")),
    ];
    // Cookies that are taken without a lock.
    /// A thread that takes a cookie without a lock is not shown that a grace period has begun.
    UnseenBegin "unseen-begin" [
        Loom(&["loom_tests::cookies::a_cookie_without_the_lock_beside_a_reader"]),
    ];
    /// The begin of a grace period is shown with relaxed order, so that it hides the end of the one
    /// before.
    RelaxedBegin "relaxed-begin" [
        Loom(&["loom_tests::cookies::a_cookie_without_the_lock_beside_a_reader"]),
    ];
    /// A thread that takes a cookie without a lock does not fence after the exchange that unlinked.
    NoUnlinkFence "no-unlink-fence" [
        Loom(&["loom_tests::cookies::a_cookie_without_the_lock_beside_a_reader"]),
    ];
    /// A driver that finds no other reader does not fence.
    NoFenceAlone "no-fence-alone" [
        Loom(&["loom_tests::cookies::a_cookie_without_the_lock_beside_a_driver_that_reads"]),
    ];
    // Callbacks.
    /// Callbacks run without waiting for their grace period.
    EarlyCallbacks "early-callbacks" [
        Torture("readers"), Loom(&["loom_tests::callbacks::callbacks_wait_for_readers"]),
    ];
    /// An object is retired before it is unlinked, and freed after that grace period.
    RetireBeforeUnlink "retire-before-unlink" [Torture("readers")];
    /// `barrier` returns without waiting.
    NoBarrier "no-barrier" [Torture("readers")];
    /// A batch gets its cookie before its callbacks are counted.
    CookieBeforeCount "cookie-before-count" [
        Loom(&["loom_tests::callbacks::what_another_thread_closes_waits_for_readers"]),
    ];
    /// The worker leaves a domain alone without a fence before its last look.
    NoIdleFence "no-idle-fence" [
        Loom(&["loom_tests::callbacks::the_worker_leaves_nothing_behind"])
    ];
    /// A thread that ends says so before its last callbacks can be seen.
    RelaxedOrphan "relaxed-orphan" [
        Loom(&["loom_tests::callbacks::an_orphan_is_forgotten_when_it_is_empty"]),
    ];
    /// The writer of a queue counts a callback before its words can be seen.
    RelaxedWrite "relaxed-write" [
        Loom(&["loom_tests::callbacks::two_threads_run_a_queue_in_order"]),
    ];
    /// Callbacks of a thread that has ended move although a barrier waits for them.
    AwaitedMove "awaited-move" [
        Loom(&["loom_tests::callbacks::a_barrier_finds_what_was_left_behind"])
    ];
    /// A barrier comes to a queue, and waits for all that has been added by then.
    LateMark "late-mark" [
        Test(library("regressions", "fairness::a_barrier_waits_for_nothing_queued_later"))
    ];
    /// The worker looks into one queue after the other while callbacks move between them.
    OneByOne "one-by-one" [Loom(&["loom_tests::callbacks::the_worker_sees_what_moves"])];
    /// What waits is not bounded.
    NoLimit "no-limit" [Torture("limits")];
    /// Inside a section a thread goes over the limit as often as it likes.
    NoRefusal "no-refusal" [Torture("limits")];
    /// A thread that went over the limit does not settle that when its section ends.
    NoSettle "no-settle" [Torture("limits")];
    /// The room that callbacks make is given back twice.
    UnchargedTwice "uncharged-twice" [Torture("limits")];
    /// The room that callbacks make is not given back where another thread runs them.
    LostRoom "lost-room" [Torture("limits")];
    /// A thread that ends keeps what it might still have added.
    LostLocalStock "lost-local-stock" [Torture("limits")];
    /// Of the callbacks that are run in one go the first few are passed over.
    SkipOne "skip-one" [Torture("floods")];
    /// The callbacks of a thread that has ended are forgotten.
    LostTail "lost-tail" [Torture("quiet")];
    /// Callbacks wait for company for ever.
    LazyForever "lazy-forever" [Torture("quiet")];
    /// The worker runs what is ready in one domain, however long that takes.
    EndlessTurn "endless-turn" [
        Test(library("regressions", "long_turns::a_domain_with_much_to_run_holds_no_other_up"))
    ];
    /// The worker is not told of callbacks.
    NoAnnouncement "no-announcement" [Torture("quiet")];
    /// A child process believes that a thread which it does not have still runs callbacks.
    RunnerAfterFork "runner-after-fork" [Torture("processes")];
    // Tasks.
    /// Futures are not woken.
    LostWaker "lost-waker" [
        Torture("sleepable"),
        Loom(&["loom_tests::sleepers::a_task_that_waits_for_a_grace_period_is_not_left_asleep"]),
    ];
    /// A task that waits for callbacks does not fence before its last look.
    NoSleeperFence "no-sleeper-fence" [
        Loom(&["loom_tests::sleepers::a_task_that_waits_for_callbacks_is_not_left_asleep"]),
    ];
    /// A thread that has run callbacks does not fence before it looks for tasks that wait.
    NoRunnerFence "no-runner-fence" [
        Loom(&["loom_tests::sleepers::a_task_that_waits_for_callbacks_is_not_left_asleep"]),
    ];
    // Queues of callbacks with embedded heads.
    /// A thread calls what it has deferred in its sections, too.
    DeferredInSection "deferred-in-section" [
        Test(library("lib", "reclaim::defer::deferred::tests::in_a_section_nothing_is_called")),
    ];
    /// Who finds the place of a function's kind taken meanwhile takes what is there for its own.
    DeferredAsAnother "deferred-as-another" [
        Test(library("lib", "reclaim::defer::deferred::tests::each_function_has_one_kind")),
    ];
    /// What is put to the heads of a round while it waits is run with them.
    UnripeHeads "unripe-heads" [
        Test(library(
            "regressions",
            "neglected_queue::what_is_pushed_beside_a_visitor_waits_for_its_own_grace_period",
        )),
    ];
    /// A thread pushes on where others wait for room.
    UnsharedRoom "unshared-room" [
        Test(library(
            "lib",
            "reclaim::head_queue::waiting_room::tests::a_thread_that_has_had_its_share_waits",
        )),
    ];
    /// What threads have pushed and not counted is not counted by who takes it.
    UncountedPush "uncounted-push" [
        Test(library("lib", "call_rcu::callback_queue::tests::what_is_taken_is_counted")),
    ];
    /// A push does not release what was written before.
    RelaxedPush "relaxed-push" [Loom(&["loom_tests::llist::an_llist_wakes_whoever_sleeps"])];
    /// A push that finds the runner asleep does not ring.
    NoBell "no-bell" [Loom(&["loom_tests::llist::an_llist_wakes_whoever_sleeps"])];
    /// A runner goes to sleep without looking whether a callback has come.
    DeafSleep "deaf-sleep" [Loom(&["loom_tests::llist::an_llist_wakes_whoever_sleeps"])];
    /// These callbacks run without a grace period.
    EarlyCallbackQueue "early-callback-queue" [
        CTorture, Test(library("callback_queue", "nothing_runs_beside_a_section")),
    ];
    /// A barrier passes over these queues.
    NoMark "no-mark" [
        Test(library("callback_queue", "everything_runs_in_order_before_a_barrier_returns")),
    ];
    /// What was left in such a queue that ends is forgotten.
    LostCallbackQueue "lost-callback-queue" [
        Test(library("callback_queue", "a_callback_queue_is_handed_over_in_order"))
    ];
    // Sleepable domains.
    /// A grace period passes over the index that is not current when it begins.
    OneScan "one-scan" [Torture("sleepable")];
    /// A grace period ends when the indexes have been flipped.
    EarlyHandOut "early-hand-out" [Torture("sleepable")];
    /// The indexes are not flipped.
    NoFlip "no-flip" [Torture("sleepable")];
    /// The lock counts are summed before the unlock counts.
    LocksFirst "locks-first" [Explorer, Torture("sleepable")];
    /// A section ends in the index that is current then.
    WrongIndex "wrong-index" [Torture("sleepable")];
    /// Sums leave out the words of the CPUs.
    SharedOnly "shared-only" [Torture("sleepable")];
    // Restartable sequences, and reads that are one.
    /// Sequences that are interrupted go on.
    NoRestart "no-restart" [
        TortureOn("tools", "restartable"),
        Test(library("lib", "os::percpu::tests::interrupted_counts_are_not_lost")),
    ];
    /// The barrier of restartable reads is a fence that aborts no sequence.
    PlainBarrier "plain-barrier" [Explorer, TortureOn("rseq-read", "restartable")];
    /// A grace period of restartable reads has no barrier.
    NoRestartBarrier "no-restart-barrier" [Explorer, TortureOn("rseq-read", "restartable")];
    /// A grace period of restartable reads does not look for readers in fallback sections.
    NoFallbackLook "no-fallback-look" [Explorer, TortureOn("rseq-read", "portable")];
    /// A child process forgets the fallback section that its fork has interrupted.
    NoStandIn "no-stand-in" [
        Test(library(
            "regressions",
            "fork_in_handlers::a_store_in_a_child_waits_for_no_section_that_the_fork_interrupted",
        ).hangs()),
    ];
    // The tools in `sync`.
    /// A fold of the words of the CPUs does not set the flag.
    NoStallFlag "no-stall-flag" [
        Torture("tools"),
        Test(library("tools", EXACT).on("restartable").in_one_of(5)),
        Test(library("tools", LIMITS).on("restartable").in_one_of(5)),
        Test(library("local_global", ALONE).on("restartable").in_one_of(5).hangs()),
        Test(library("local_global", ALONE).on("portable").in_one_of(5).hangs()),
    ];
    /// A fold of the words of the CPUs does not wait until they stand still.
    NoStallBarrier "no-stall-barrier" [
        TortureOn("tools", "restartable"),
        Test(library("tools", EXACT).on("restartable").in_one_of(5)),
        Test(library("local_global", ALONE).on("restartable").in_one_of(5).hangs()),
    ];
    /// A reference's count is taken for whole before the words of the CPUs are in it.
    EarlyRelease "early-release" [
        Torture("tools"), Test(library("tools", RELEASED).on("restartable").in_one_of(5)),
    ];
    /// The last reader of a local-global lock does not wake the writer.
    NoWriterWakeUp "no-writer-wake-up" [
        Torture("tools"), Test(library("local_global", ALONE).on("restartable").hangs()),
    ];
    // Sequence locks and latches.
    /// The writer of a sequence lock does not make the sequence odd.
    SeqNoOdd "seq-no-odd" [
        Explorer, Torture("sequences"), Test(library("sequences", WHOLE).in_one_of(5)),
    ];
    /// The reader of a sequence lock does not load the sequence again.
    SeqNoRecheck "seq-no-recheck" [
        Explorer, Torture("sequences"), Test(library("sequences", WHOLE).in_one_of(5)),
    ];
    /// The writer of a latch writes a copy before it sends readers to the other one.
    LatchCopyFirst "latch-copy-first" [
        Explorer, Torture("sequences"),
        Test(library("sequences", "no_read_of_a_latch_has_words_of_two_values").in_one_of(5)),
    ];
    /// The writer of a latch does not wait for pinned readers.
    LatchNoPins "latch-no-pins" [
        Explorer,
        Test(library("lib", "sync::latch::tests::a_writer_waits_for_a_reader_that_is_pinned")),
    ];
    /// A writer that is about to sleep executes no fence.
    NoWritersFence "no-writers-fence" [Explorer];
    /// A writer that lets go of the lock wakes no thread.
    NoWritersWakeUp "no-writers-wake-up" [
        Explorer, Test(library("sequences", TURNS).hangs()),
    ];
    // The hash table.
    /// A search begins at a bucket before that stands in the list.
    UnlinkedStart "unlinked-start" [
        Loom(&["collections::hash_table::loom_tests::a_bucket_comes_into_the_list_once"]),
    ];
    /// A node is linked without release.
    RelaxedLink "relaxed-link" [
        Loom(&["collections::hash_table::loom_tests::a_bucket_comes_and_goes"]),
    ];
    /// Two threads may take themselves for the one that has deleted a node.
    NoOwner "no-owner" [Loom(&["collections::hash_table::loom_tests::one_of_two_deletes"])];
    /// A deleted node is not unlinked.
    NoUnlink "no-unlink" [Loom(&["collections::hash_table::loom_tests::one_of_two_deletes"])];
    /// Two threads may put the same bucket into the list.
    NoClaim "no-claim" [
        Loom(&["collections::hash_table::loom_tests::a_bucket_comes_into_the_list_once"]),
    ];
    /// A thread that has shrunk a table does not look whether it is to grow again.
    LostResize "lost-resize" [
        Test(library("hash_table", "what_is_asked_for_while_a_table_shrinks_is_done")),
    ];
    /// A thread that ends a table does not hold its worker off.
    NoHold "no-hold" [
        Test(library("hash_table", "nothing_is_taken_from_a_table_while_it_is_looked_at")),
        Test(library("hash_table", "no_table_is_looked_at_when_it_is_gone")),
    ];
    // Queues and stacks of nodes that callers bring along.
    /// A node is linked before its content can be seen.
    UnseenNode "unseen-node" [Loom(&[
        "collections::loom_tests::a_lock_free_queue",
        "collections::loom_tests::two_pop_of_a_lock_free_stack",
        "collections::loom_tests::a_wait_free_stack",
        "collections::loom_tests::a_queue_with_a_sentinel",
        "collections::loom_tests::what_two_producers_enqueue_is_dequeued_in_their_order",
        "collections::id_map::loom_tests::a_reader_sees_what_was_inserted_whole",
    ])];
    /// A thread that takes the last node of a queue empties its head after it moved the tail back.
    LateHead "late-head" [Loom(&[
        "collections::loom_tests::one_enqueue_finds_the_queue_empty_for_each_last_dequeue",
    ])];
    /// A thread that takes the last node of a queue does not check that the tail is still there.
    TailUnchecked "tail-unchecked" [Loom(&[
        "collections::loom_tests::one_enqueue_finds_the_queue_empty_for_each_last_dequeue",
    ])];
    /// Of several threads that take all of a queue, each takes the first node.
    TakeUnchecked "take-unchecked" [Loom(&["collections::loom_tests::two_take_all"])];
    /// A link that is not written yet is taken for the end of the stack.
    UnlinkedEnd "unlinked-end" [Loom(&["collections::loom_tests::a_wait_free_stack"])];
    /// The first node is taken even where another thread took it meanwhile.
    PopUnchecked "pop-unchecked" [Loom(&[
        "collections::loom_tests::a_lock_free_queue",
        "collections::loom_tests::two_pop_of_a_lock_free_stack",
    ])];
    /// A node is taken out of a lock-free queue whose tail names it still.
    TailLeftBehind "tail-left-behind" [Loom(&[
        "collections::loom_tests::what_left_a_lock_free_queue_is_not_found_by_later_sections",
    ])];
    // The list of values.
    /// An element is linked before its content can be seen.
    UnseenElement "unseen-element" [Loom(&[
        "collections::list::loom_tests::an_insertion_is_seen_whole",
        "collections::list::loom_tests::a_removal_links_what_another_updater_has_inserted",
        "collections::list::loom_tests::a_reader_sees_an_element_or_its_replacement",
    ])];
    /// An element that is removed loses its successor.
    RemovedNext "removed-next" [
        Loom(&[
            "collections::list::loom_tests::a_reader_on_removed_elements_comes_back_into_the_list",
        ]),
        Torture("lists"),
    ];
    /// An element is taken out before its replacement is put in.
    ReplacedInTwo "replaced-in-two" [Loom(&[
        "collections::list::loom_tests::a_reader_sees_an_element_or_its_replacement",
    ])];
    // The id table.
    /// An index is given back with relaxed order, so that its next owner sees an old generation.
    IdRelaxedRelease "id-relaxed-release" [Loom(&[
        "collections::id_map::loom_tests::an_index_that_is_used_again_has_another_id",
    ])];
    /// A thread that says that a chunk is full does not look a second time.
    IdFullUnchecked "id-full-unchecked" [Loom(&[
        "collections::id_map::loom_tests::a_free_index_is_not_lost",
    ])];
    /// A thread that marks an entry does not look whether another one took its place meanwhile.
    IdMarksAnother "id-marks-another" [Loom(&[
        "collections::id_map::loom_tests::a_mark_does_not_outlive_its_entry",
    ])];
    /// Marks are changed without the lock of their chunk.
    IdMarksUnlocked "id-marks-unlocked" [Loom(&[
        "collections::id_map::loom_tests::a_search_finds_what_was_marked_before_it",
    ])];
    // Mistakes of a user of RCU, which the torture itself makes.
    /// An updater publishes a block, and writes its payload only then.
    PublishBeforeInit "publish-before-init" [Torture("readers")];
    /// A reader looks at a block once more after it has left its section.
    LeaveEarly "leave-early" [Torture("readers")];
    // The liburcu-compatible libraries.
    /// A thread that registers is not entered into the registry.
    CompatRegister "compat-register" [
        Test(flavors("readers::a_grace_period_waits_for_a_section_and_not_for_later_ones")),
    ];
    /// A thread that ends stays a reader.
    CompatEnd "compat-end" [
        Test(flavors("readers::a_thread_that_ends_is_no_reader_any_more").hangs()),
    ];
    /// A reader does not wake the updater that sleeps.
    CompatWake "compat-wake" [
        Test(flavors("qsbr::going_offline_wakes_an_updater_that_sleeps").hangs()),
    ];
    /// A QSBR reader that waits for a grace period stays online.
    CompatAway "compat-away" [
        Test(flavors("qsbr::who_waits_is_offline_meanwhile_and_online_afterwards")),
    ];
    /// A QSBR reader that has waited for a grace period stays offline.
    CompatBack "compat-back" [
        Test(flavors("qsbr::who_waits_is_offline_meanwhile_and_online_afterwards")),
    ];
    /// A caller of bp is not registered ahead of its signal handlers.
    CompatAhead "compat-ahead" [
        Test(flavors("bp::who_calls_the_library_is_registered_ahead_of_signal_handlers")),
    ];
    /// There is no room for records in advance.
    CompatRoom "compat-room" [Test(flavors("bp::the_first_section_allocates_nothing"))];
    /// The room for records is not filled up.
    CompatReserve "compat-reserve" [Test(flavors("bp::the_first_section_allocates_nothing"))];
    /// `errno` is not put back.
    CompatErrno "compat-errno" [Test(flavors("bp::callers_are_not_disturbed"))];
    /// Cancellation is not held off.
    CompatUncancelled "compat-uncancelled" [Test(flavors("bp::callers_are_not_disturbed"))];
    /// Signals are not blocked while a thread registers.
    CompatBlock "compat-block" [
        Test(flavors("bp::signals_are_blocked_while_a_thread_registers_and_unregisters")),
    ];
    /// Records of threads that have ended are not used again.
    CompatGiveBack "compat-give-back" [Test(flavors("bp::records_are_used_again"))];
    /// A child process has the records of all threads but those of its own.
    CompatOwnRecord "compat-own-record" [Test(flavors("fork::the_child_has_all_records_of_bp"))];
    /// Signals are not blocked while a fork copies the memory.
    CompatForkMask "compat-fork-mask" [
        Test(flavors("fork::no_handler_runs_while_the_memory_is_copied")),
    ];
    /// Functions that were deferred are called by a thread that is no reader.
    CompatSurroundings "compat-surroundings" [
        Test(flavors("defer::functions_are_called_by_a_registered_reader")),
    ];
    /// `rcu_defer_barrier` does not wait.
    CompatBarrier "compat-defer-barrier" [
        Test(flavors("defer::calls_are_made_in_order_and_a_barrier_waits_for_them")),
    ];
    /// Online threads at the limit wait for each other.
    CompatLimit "compat-defer-limit" [
        Test(flavors("defer::online_threads_at_the_limit_do_not_wait_for_each_other")),
    ];
    /// Hazard pointers are not looked at.
    HazardScan "hazard-scan" [Test(flavors("hazard::what_is_protected_stays_until_it_is_not"))];
    /// A hazard domain's grace period executes no heavy fence.
    HazardNoFence "hazard-no-fence" [Explorer];
    /// What was loaded is protected without a second load of the source.
    HazardNoRecheck "hazard-no-recheck" [
        Explorer, Torture("hazards"),
        Loom(&["loom_tests::hazard::what_is_protected_is_not_freed"]),
    ];
    /// A slot is taken, and written, by relaxed accesses.
    HazardReuse "hazard-reuse" [
        Explorer, Loom(&["loom_tests::hazard::a_slot_is_handed_on_with_what_was_read"]),
    ];
    /// A protection ends by a relaxed store, which the scan loads so.
    HazardRelease "hazard-release" [
        Explorer, Loom(&["loom_tests::hazard::what_is_protected_is_not_freed"]),
    ];
    /// A block is not looked at again once it is taken.
    HazardAdopt "hazard-adopt" [
        Loom(&["loom_tests::hazard::a_holder_has_a_slot_that_protects_nothing"]),
    ];
    /// An object that is protected when it is its turn is forgotten.
    HazardKeptLost "hazard-kept-lost" [
        Explorer, Test(library("hazard", "what_is_protected_is_freed_later")),
    ];
    /// A barrier does not wait for what another thread has taken to free it.
    HazardKeptInHand "hazard-kept-in-hand" [
        Test(library(
            "regressions",
            "barrier_beside_kept::a_barrier_waits_for_what_another_one_is_dropping",
        )),
    ];
    /// The thread that reclaims is not woken.
    HazardWake "hazard-wake" [
        Test(flavors("hazard::the_thread_that_reclaims_is_woken").hangs()),
    ];
    /// What was loaded from an exact cell is borrowed without a second load.
    BorrowNoRecheck "borrow-no-recheck" [
        Torture("exact"),
        Loom(&["loom_tests::borrows::what_is_borrowed_is_paid_or_given_back"]),
    ];
    /// A borrow is given back by a relaxed exchange, and the updater looks at it so.
    BorrowRelease "borrow-release" [
        Loom(&["loom_tests::borrows::what_is_borrowed_is_paid_or_given_back"]),
    ];
    /// A slot is taken for a borrow, and written, by relaxed accesses.
    BorrowReuse "borrow-reuse" [
        Loom(&["loom_tests::borrows::what_is_borrowed_is_paid_or_given_back"]),
    ];
    /// The count of a borrower that is paid is added after it was told so.
    BorrowCountLate "borrow-count-late" [
        Torture("exact"),
        Loom(&["loom_tests::borrows::what_is_borrowed_is_paid_or_given_back"]),
    ];
    /// All uses of a slot have one number.
    BorrowSameUse "borrow-same-use" [
        Torture("exact"),
        Loom(&["loom_tests::borrows::what_is_borrowed_is_paid_or_given_back"]),
    ];
    /// A borrow that is not confirmed is paid by updaters of other cells.
    BorrowAnyCell "borrow-any-cell" [
        Loom(&["loom_tests::borrows::an_address_that_is_used_again_is_another_cells"]),
    ];
    /// A slot of a hash map is used again as soon as its entry is removed.
    MapNoCookie "map-no-cookie" [Explorer, Torture("maps"), Loom(&[
        "collections::hash_map::loom_tests::a_key_that_is_replaced_is_found",
        "collections::hash_map::loom_tests::a_slot_is_filled_again_after_its_readers",
    ])];
    /// The tag of a slot is stored before its entry.
    MapTagBeforeKey "map-tag-before-key" [Explorer, Torture("maps"), Loom(&[
        "collections::hash_map::loom_tests::a_slot_is_filled_again_after_its_readers",
    ])];
    /// A reader that misses in a node does not look whether the bucket has another one by now.
    MapNoRecheck "map-no-recheck" [Explorer, Torture("maps"), Loom(&[
        "collections::hash_map::loom_tests::a_key_is_found_while_its_table_shrinks",
        "collections::hash_map::loom_tests::a_key_that_comes_and_goes_from_nodes_is_found",
    ])];
    /// A bucket is said to have moved before its entries are in the next table.
    MapMovedBeforeCopy "map-moved-before-copy" [Explorer, Torture("maps"), Loom(&[
        "collections::hash_map::loom_tests::a_key_is_found_while_its_bucket_moves",
        "collections::hash_map::loom_tests::a_key_is_found_while_its_table_shrinks",
        "collections::hash_map::loom_tests::a_boxed_key_is_found_while_its_bucket_moves",
    ])];
    /// An entry that goes to a node is taken out of the slots before the node has it.
    MapOverflowLate "map-overflow-late" [Explorer, Torture("maps"), Loom(&[
        "collections::hash_map::loom_tests::a_key_that_is_replaced_is_found",
        "collections::hash_map::loom_tests::a_key_that_comes_and_goes_from_nodes_is_found",
    ])];
    /// An entry that came in before an update had the lock, and that it has not looked at, is taken
    /// for one of another key, or does not move.
    MapUnseen "map-unseen" [Loom(&[
        "collections::hash_map::loom_tests::two_updaters_of_a_key_leave_one_entry",
        "collections::hash_map::loom_tests::two_updaters_of_a_boxed_key_leave_one_entry",
        "collections::hash_map::loom_tests::an_updater_follows_a_bucket_that_moves",
    ])];
    /// A table of a hash map shrinks while old ones wait.
    MapShrinksOn "map-shrinks-on" [
        Test(library("regressions", "map_tables::old_tables_had_no_bound")),
    ];
}

/// A driver whose place another thread takes, in its sleep.
const ASLEEP: &str =
    "gp::grace_periods::handover::tests::a_driver_whose_place_is_taken_in_its_sleep_returns";
/// A test of `quiescence/tests/liburcu_readers.rs`.
const LEAVES: &str = "a_reader_that_leaves_just_before_the_driver_sleeps_is_seen";

/// Readers and updaters in all flavours of `quiescence/tests/liburcu_readers.rs`.
const STRESS: &str = "nobody_reads_what_a_grace_period_has_ended";
/// Exact sums beside additions.
const EXACT: &str = "an_exact_sum_is_the_value_of_one_moment";
/// Counters with a limit.
const LIMITS: &str = "a_limit_that_all_together_reach_is_kept";
/// References that are released once.
const RELEASED: &str = "the_last_reference_releases_once";
/// A writer of a local-global lock beside readers.
const ALONE: &str = "writers_are_alone";

/// Readers and writers of sequence locks.
const WHOLE: &str = "no_read_has_words_of_two_values";
/// Writers of a sequence lock that wait for each other.
const TURNS: &str = "writers_that_sleep_have_their_turn";

/// A test with a driver that is stopped: without the take-over the others wait for ever.
const fn stalled(test: &'static str) -> Place {
    library("regressions", test).hangs()
}

impl Mutant {
    /// The step with this name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|mutant| mutant.name() == name)
    }

    /// The theme of the torture run that must notice, and how the process must count per CPU for
    /// the step to be taken at all.
    pub fn torture(self) -> Option<(&'static str, Option<&'static str>)> {
        self.catchers().iter().find_map(|catcher| match *catcher {
            Torture(theme) => Some((theme, None)),
            TortureOn(theme, per_cpu) => Some((theme, Some(per_cpu))),
            _ => None,
        })
    }
}
