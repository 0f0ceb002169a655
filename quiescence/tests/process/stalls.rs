//! Grace periods that stall are reported: who holds them up, where, and what it is doing.
#![cfg(all(target_os = "linux", feature = "stacks"))]

use crate::common::{self, *};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use object::{Object, ObjectSymbol, SymbolKind};
use quiescence::{
    Qsbr,
    report::{Holdout, StackMissing, StallReport, ThreadState},
    tuning::{Builder, Engine},
};

const LIMIT: Duration = Duration::from_millis(2);

/// A domain of this name, which is new, and the reports of its stalls.
fn listened_to(name: &str, engine: Engine, limit: Duration) -> (Domain, Receiver<StallReport>) {
    let told = crate::reports::of(name);
    let domain = Domain::builder().engine(engine).name(name).build();
    tune(&domain, Some(limit), Some(limit));
    (domain, told)
}

/// A domain that this thread holds up, for the sake of a callback.
fn held_up(builder: Builder) -> (Domain, Qsbr<Private>) {
    let domain = builder.build();
    tune(&domain, Some(LIMIT), None);
    let reader = domain.qsbr();
    domain.call(|| ()).unwrap();
    (domain, reader)
}

fn tune(domain: &Domain, limit: Option<Duration>, limit_expedited: Option<Duration>) {
    common::tune(domain, |tuning| {
        (tuning.stall_after, tuning.stall_after_expedited) = (limit, limit_expedited);
        tuning.lazy = Duration::ZERO;
    });
}

/// Calls `f` with the id of a thread named `name` once that has called the first argument of
/// `section`, which is to return when it is asked to or when it finds that no thread will tell.
fn beside<R>(
    name: &str,
    section: impl FnOnce(&dyn Fn(), Receiver<()>) + Send,
    f: impl FnOnce(u32) -> R,
) -> R {
    let (enter, entered) = mpsc::channel();
    let (leave, left) = mpsc::channel();
    thread::scope(|scope| {
        let reader = thread::Builder::new().name(name.into());
        let enter = move || enter.send(thread_id()).unwrap();
        reader.spawn_scoped(scope, move || section(&enter, left)).unwrap();
        let result = f(entered.recv().unwrap());
        drop(leave);
        result
    })
}

/// The same in a section of the domain, whose callbacks want a grace period.
fn beside_a_reader<R>(
    name: &str,
    domain: &Domain,
    pastime: fn(&Receiver<()>),
    f: impl FnOnce(u32) -> R,
) -> R {
    let section = |enter: &dyn Fn(), left: Receiver<()>| {
        let _guard = domain.read();
        enter();
        pastime(&left);
    };
    beside(name, section, |id| {
        domain.call(|| ()).unwrap();
        f(id)
    })
}

#[inline(never)]
fn blocks_in_a_section(until: &Receiver<()>) {
    let left = until.recv();
    // Something to come back for: else the compiler makes a jump of the call, and there is no
    // frame.
    std::hint::black_box(&left).unwrap_err();
}

#[inline(never)]
fn spins_in_a_section(until: &Receiver<()>) {
    while until.try_recv() == Err(mpsc::TryRecvError::Empty) {
        std::hint::spin_loop();
    }
}

/// The first report whose first holdout is as wanted: a thread that has entered its section may not
/// have come to rest there when the first one is made. Ends when the report has been made.
fn report_of(told: &Receiver<StallReport>, wanted: impl Fn(&Holdout) -> bool) -> StallReport {
    told.iter().find(|report| report.holdouts.first().is_some_and(&wanted)).unwrap()
}

fn has_function(holdout: &Holdout, name: &str) -> bool {
    let frames = holdout.stack.as_deref().unwrap_or_default();
    frames.iter().filter_map(|frame| frame.offset).any(|offset| {
        let mut functions = functions_of_this_program().range(..=offset);
        functions.next_back().is_some_and(|(_, function)| function.contains(name))
    })
}

/// By where they are in its file.
fn functions_of_this_program() -> &'static BTreeMap<usize, String> {
    static FUNCTIONS: OnceLock<BTreeMap<usize, String>> = OnceLock::new();
    FUNCTIONS.get_or_init(|| {
        let program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let program = object::File::parse(&*program).unwrap();
        let functions = program.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text);
        functions.map(|symbol| (symbol.address() as usize, symbol.name().unwrap().into())).collect()
    })
}

#[test]
fn a_sleeping_holdout_is_named_with_its_line_and_its_stack() {
    for engine in Engine::ALL {
        let name = format!("sleeping under {engine}");
        let (domain, told) = listened_to(&name, engine, LIMIT);
        let begun = line!() + 2;
        let section = |enter: &dyn Fn(), left: Receiver<()>| {
            let _guard = domain.read();
            enter();
            blocks_in_a_section(&left);
        };
        let waiter = domain.clone();
        let (report, id, waiter) = beside("a (slow) one", section, |id| {
            let waiter = thread::spawn(move || waiter.synchronize());
            domain.call(|| ()).unwrap();
            let is_whole = |holdout: &Holdout| {
                holdout.state == ThreadState::Sleeping
                    && has_function(holdout, "blocks_in_a_section")
            };
            // The first reports may have been made before the other thread waited.
            let report = told.iter().find(|report| {
                report.statistics.waiters >= 1 && report.holdouts.first().is_some_and(is_whole)
            });
            let report = report.unwrap();
            assert_eq!(domain.statistics().grace_periods + 1, report.grace_period);
            (report, id, waiter)
        });
        waiter.join().unwrap();
        assert_eq!(report.domain, name);
        assert!(report.age >= LIMIT && !report.is_expedited, "{report}");
        assert!(report.statistics.waiters >= 1, "{report}");
        assert_eq!(report.statistics.callbacks_waiting(), 1, "{report}");
        let [holdout] = &report.holdouts[..] else { panic!("{report}") };
        assert_eq!(holdout.thread_id, Some(id));
        assert_eq!(holdout.thread_name.as_deref(), Some("a (slow) one"));
        assert!(!holdout.is_qsbr);
        let began = holdout.began.unwrap();
        assert!(began.file().ends_with("stalls.rs") && began.line() == begun, "{report}");
        let said = report.to_string();
        for part in [&name, "\"a (slow) one\"", "sleeping", "stalls.rs"] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert_eq!(has_function(holdout, "blocks_in_a_section"), said.contains("addr2line"));
        assert!(said.contains(&format!("thread {id} ")), "{said}");
    }
}

/// What a report says of how frames are named is a command, which does that.
#[test]
fn a_report_says_how_its_frames_are_named() {
    let (domain, told) = listened_to("named", Engine::Adaptive, LIMIT);
    let said = beside_a_reader("sleeper", &domain, blocks_in_a_section, |_| {
        let blocks = |holdout: &Holdout| has_function(holdout, "blocks_in_a_section");
        report_of(&told, blocks).to_string()
    });
    let program = std::env::current_exe().unwrap();
    let command = format!("addr2line -Cfipe {} ", program.display());
    let told = |line: &&str| line.contains(&command);
    let command = said.lines().find(told).unwrap().trim().strip_prefix("names: ").unwrap();
    // It is there wherever programs are linked.
    let output = Command::new("sh").args(["-c", command]).output().unwrap();
    let names = String::from_utf8_lossy(&output.stdout);
    let of_ours = |line: &&str| line.contains("stalls::blocks_in_a_section");
    let line = names.lines().find(of_ours).unwrap_or_else(|| panic!("{said}\n{output:?}"));
    assert!(line.contains("stalls.rs:"), "{line}");
}

#[test]
fn a_running_holdout_is_told_from_a_sleeping_one() {
    let (domain, told) = listened_to("running", Engine::Adaptive, LIMIT);
    let report = beside_a_reader("busy", &domain, spins_in_a_section, |_| {
        let cookie = domain.start_poll();
        let report = report_of(&told, |holdout| has_function(holdout, "spins_in_a_section"));
        assert!(!domain.poll(cookie));
        report
    });
    assert_eq!(report.holdouts[0].state, ThreadState::Running, "{report}");
}

/// By the line: its thread, and whatever name that had, is gone.
#[test]
fn a_guard_that_was_leaked_by_a_thread_that_has_ended_is_named() {
    let (domain, told) = listened_to("leaked for good", Engine::Adaptive, LIMIT);
    let begun = line!() + 1;
    elsewhere(|| std::mem::forget(domain.read()));
    domain.call(|| ()).unwrap();
    let report = report_of(&told, |holdout| holdout.state == ThreadState::Ended);
    let [holdout] = &report.holdouts[..] else { panic!("{report}") };
    assert_eq!(holdout.began.unwrap().line(), begun, "{report}");
    assert_eq!(holdout.stack, Err(StackMissing::ThreadEnded));
    assert!(report.to_string().contains("ended"), "{report}");
}

#[test]
fn a_report_comes_once_per_doubling() {
    let (domain, told) = listened_to("doubling", Engine::Adaptive, LIMIT);
    let reader = domain.qsbr();
    thread::scope(|scope| {
        scope.spawn(|| domain.synchronize());
        let reports: Vec<StallReport> = told.iter().take(5).collect();
        assert!(reports[0].age >= LIMIT);
        for two in reports.windows(2) {
            assert_eq!(two[0].grace_period, two[1].grace_period);
            assert!(two[1].age >= two[0].age * 2, "{:?} {:?}", two[0].age, two[1].age);
        }
        assert!(domain.statistics().stalls >= 5);
        drop(reader);
    });
}

#[test]
fn the_next_grace_period_is_reported_anew() {
    let (domain, told) = listened_to("anew", Engine::Adaptive, Duration::ZERO);
    let mut reader = domain.qsbr();
    for number in 1..4 {
        let cookie = domain.start_poll();
        // Each poll is a look, unless a report that is being made is in the way.
        let report = loop {
            assert!(!domain.poll(cookie));
            if let Some(report) = told.try_iter().find(|report| report.grace_period == number) {
                break report;
            }
        };
        assert_eq!(report.holdouts[0].thread_id, Some(thread_id()));
        reader.quiescent_state();
        while !domain.poll(cookie) {}
    }
}

#[test]
fn expedited_grace_periods_have_a_limit_of_their_own() {
    let (domain, told) = listened_to("expedited", Engine::Adaptive, LIMIT);
    tune(&domain, None, Some(LIMIT));
    let reader = domain.qsbr();
    thread::scope(|scope| {
        scope.spawn(|| domain.synchronize());
        // until the driver sleeps, under the other limit
        until_an_updater_sleeps(&domain);
        assert_eq!(domain.statistics().stalls, 0);
        scope.spawn(|| domain.synchronize_expedited());
        let report = told.recv().unwrap();
        assert!(report.is_expedited && report.to_string().contains("expedited"), "{report}");
        drop(reader);
    });
}

#[test]
fn a_limit_of_none_means_no_report() {
    let (domain, told) = listened_to("off", Engine::Adaptive, Duration::ZERO);
    tune(&domain, None, None);
    let (other, other_told) = listened_to("beside off", Engine::Adaptive, LIMIT);
    let (reader, other_reader) = (domain.qsbr(), other.qsbr());
    thread::scope(|scope| {
        scope.spawn(|| domain.synchronize());
        domain.call(|| ()).unwrap();
        until_an_updater_sleeps(&domain);
        scope.spawn(|| other.synchronize());
        // The other one, which began later, is reported four times meanwhile.
        assert_eq!(other_told.iter().take(4).count(), 4);
        assert_eq!(domain.statistics().stalls, 0);
        assert!(told.try_recv().is_err());
        drop((reader, other_reader));
    });
}

/// The worker leaves the grace period alone, for minutes after its first look: it tells how old it
/// is all the same.
#[test]
fn a_grace_period_that_the_workers_budget_delays_is_reported() {
    let told = crate::reports::of("frugal");
    let (_domain, _reader) = held_up(Domain::builder().worker_budget_ppm(1).name("frugal"));
    let ages: Vec<Duration> = told.iter().map(|report| report.age).take(3).collect();
    assert!(ages[1] >= ages[0] * 2 && ages[2] >= ages[1] * 2, "{ages:?}");
}

#[test]
fn each_domain_reports_its_own_holdouts() {
    let (first, first_told) = listened_to("first", Engine::Adaptive, LIMIT);
    let (second, second_told) = listened_to("second", Engine::Adaptive, LIMIT);
    beside_a_reader("in the second", &second, blocks_in_a_section, |_| {
        let reader = first.qsbr();
        first.call(|| ()).unwrap();
        let (first_report, second_report) =
            (first_told.recv().unwrap(), second_told.recv().unwrap());
        assert_eq!(first_report.holdouts[0].thread_id, Some(thread_id()));
        assert_eq!(second_report.holdouts[0].thread_name.as_deref(), Some("in the second"));
        assert_eq!((first_report.holdouts.len(), second_report.holdouts.len()), (1, 1));
        drop(reader);
    });
}

/// Under `token` it is the one at which the token is, and not those that wait behind it. No thread
/// waits and no thread polls: the worker looks, for the sake of a callback.
#[test]
fn qsbr_readers_are_reported_as_such() {
    for engine in Engine::ALL {
        let (domain, told) = listened_to(&format!("qsbr {engine}"), engine, LIMIT);
        let first_line = line!() + 1;
        let mut first = domain.qsbr();
        let second: Qsbr<_> = domain.qsbr();
        domain.call(|| ()).unwrap();
        let report = told.recv().unwrap();
        let holdouts = &report.holdouts;
        assert_eq!(report.statistics.callbacks_waiting(), 1, "{report}");
        assert_eq!(holdouts.len(), if engine == Engine::Token { 1 } else { 2 }, "{report}");
        assert!(holdouts.iter().all(|holdout| holdout.is_qsbr));
        assert_eq!(holdouts[0].began.unwrap().line(), first_line, "{report}");
        assert!(report.to_string().contains("QSBR"), "{report}");
        // The first does its part, so the second is left.
        first.quiescent_state();
        let alone = |report: &StallReport| match &report.holdouts[..] {
            [holdout] => holdout.began.unwrap().line() == first_line + 1,
            _ => false,
        };
        assert!(told.iter().any(|report| alone(&report)));
        drop((first, second));
        domain.barrier();
    }
}

/// One thread has 70 readers.
#[test]
fn very_many_holdouts_are_counted() {
    let (domain, told) = listened_to("many", Engine::Adaptive, LIMIT);
    let readers: Vec<Qsbr<_>> = (0..70).map(|_| domain.qsbr()).collect();
    domain.call(|| ()).unwrap();
    let stacks = |report: &StallReport| {
        let holdouts = &report.holdouts;
        assert_eq!((holdouts.len(), report.holdouts_unnamed), (64, 6));
        assert_eq!(holdouts[63].stack, Err(StackMissing::EnoughTaken));
        assert!(report.to_string().contains("held up by 6 more"), "{report}");
        holdouts.iter().filter(|holdout| holdout.stack.is_ok()).count()
    };
    // On a machine that is busy a thread may not answer in time.
    assert!(told.iter().any(|report| stacks(&report) == 16));
    drop(readers);
}

#[test]
fn a_thread_that_blocks_the_signal_is_reported_without_a_stack() {
    let (domain, told) = listened_to("masked", Engine::Adaptive, LIMIT);
    let blocks_signals = |left: &Receiver<()>| {
        // SAFETY: plain data, for which zero is a value.
        let mut all: libc::sigset_t = unsafe { std::mem::zeroed() };
        // SAFETY: fills the set that it is given.
        unsafe { libc::sigfillset(&raw mut all) };
        // SAFETY: the set is filled; what was before is not asked for.
        let done =
            unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, ptr::null_mut()) };
        assert_eq!(done, 0);
        blocks_in_a_section(left);
    };
    let wanted = |holdout: &Holdout| matches!(holdout.stack, Err(StackMissing::SignalBlocked(_)));
    let report = beside_a_reader("masked", &domain, blocks_signals, |_| report_of(&told, wanted));
    let [holdout] = &report.holdouts[..] else { panic!("{report}") };
    assert_eq!(holdout.thread_name.as_deref(), Some("masked"));
    assert!(report.to_string().contains("blocks signal"), "{report}");
}

// ---- in processes of their
// own ----------------------------------------------------------------------

/// A stall of a domain that is made for it, noticed by the calling thread, which holds it up
/// itself.
fn stall() -> Domain {
    let domain = Domain::new();
    tune(&domain, Some(Duration::ZERO), None);
    let mut reader = domain.qsbr();
    let cookie = domain.start_poll();
    // Each poll is a look, unless somebody else is looking: a report that is made, or a fork.
    while domain.statistics().stalls == 0 {
        assert!(!domain.poll(cookie));
    }
    reader.quiescent_state();
    while !domain.poll(cookie) {} // grace periods go on
    domain
}

#[test]
fn a_hook_that_panics_is_counted_and_called_again() {
    in_its_own_process!();
    let report: StallReport = own_report("panics", |report, tell| {
        assert!(report.hook_panics >= 2, "the hook fails");
        tell.send(report.clone()).unwrap();
    });
    assert_eq!(report.hook_panics, 2);
    assert!(report.to_string().contains("panics of the hook for these reports: 2"), "{report}");
}

#[test]
fn a_hook_that_blocks_holds_nobody_up() {
    in_its_own_process!();
    let (blocks, entered, leave) = gate();
    let (blocks, (tell, told)) = (Mutex::new(blocks), mpsc::channel());
    quiescence::report::set_stall_hook(move |report| {
        blocks.lock().unwrap()(); // for as long as the test likes
        tell.send(report.reports_lost).unwrap();
    });
    let (domain, reader) = held_up(Domain::builder());
    entered.recv().unwrap();
    // 64 find room. The domains live on, so that nothing else loses a report.
    let others: Vec<Domain> = (0..100).map(|_| stall()).collect();
    drop(reader);
    domain.synchronize();
    domain.barrier();
    assert!(told.try_recv().is_err(), "it still blocks");
    drop(leave);
    told.recv().unwrap();
    // Notes of grace periods that are over are passed by. What comes now says what was lost.
    let reader = domain.qsbr();
    domain.call(|| ()).unwrap();
    assert!(told.iter().any(|lost| lost >= 36));
    drop((reader, others));
    domain.barrier();
}

#[test]
fn reports_go_to_standard_error_by_default() {
    if role().is_some() {
        quiescence::report::set_stall_hook(|_| ());
        assert!(quiescence::report::take_stall_hook().is_some());
        assert!(quiescence::report::take_stall_hook().is_none());
        let (domain, reader) = held_up(Domain::builder().name("default"));
        // Until the parent has seen it.
        let _ = std::io::stdin().read(&mut [0]);
        drop(reader);
        return domain.barrier();
    }
    let mut child = command_of(this_test!(), "again")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let said: Vec<String> = BufReader::new(child.stderr.take().unwrap())
        .lines()
        .map(Result::unwrap)
        .skip_while(|line| !line.starts_with("quiescence: a grace period has not ended"))
        .take(3)
        .collect();
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    assert!(said[0].contains("number 1 of domain default"), "{said:?}");
    assert!(said[1].contains("held up by thread"), "{said:?}");
    assert!(said[2].contains("online since") && said[2].contains("stalls.rs"), "{said:?}");
}

/// The report of a stall that the calling thread makes, whatever `hook` sends of it.
fn own_report<R: Send + 'static>(
    name: &str,
    hook: impl Fn(&StallReport, &Sender<R>) + Send + Sync + 'static,
) -> R {
    let (tell, told) = mpsc::channel();
    quiescence::report::set_stall_hook(move |report| hook(report, &tell));
    let (domain, reader) = held_up(Domain::builder().name(name));
    let sent = told.recv().unwrap();
    drop(reader);
    domain.synchronize();
    domain.barrier();
    sent
}

/// What such a report says of its stack.
fn own_stack() -> Result<usize, StackMissing> {
    let report: StallReport = own_report("", |report, tell| tell.send(report.clone()).unwrap());
    report.holdouts[0].stack.as_ref().map(Vec::len).map_err(Clone::clone)
}

#[test]
fn the_environment_turns_stacks_off() {
    in_its_own_process!(&[("QUIESCENCE_STALL_SIGNAL", "off")]);
    assert_eq!(own_stack(), Err(StackMissing::TurnedOff));
}

extern "C" fn somebodys_handler(_: i32) {}

#[test]
fn the_environment_chooses_the_signal() {
    in_its_own_process!(&[("QUIESCENCE_STALL_SIGNAL", "50")]);
    assert_eq!(storm::handler_of(50), libc::SIG_DFL);
    assert!(own_stack().unwrap() > 3);
    assert_ne!(storm::handler_of(50), libc::SIG_DFL);
    assert_eq!(storm::handler_of(libc::SIGRTMIN() + 1), libc::SIG_DFL);
}

#[test]
fn a_signal_that_the_program_handles_is_left_alone() {
    in_its_own_process!();
    let first = libc::SIGRTMIN() + 1;
    let theirs = somebodys_handler as extern "C" fn(i32) as usize;
    // SAFETY: a handler that does nothing.
    unsafe { libc::signal(first, theirs) };
    assert!(own_stack().unwrap() > 3);
    assert_eq!(storm::handler_of(first), theirs);
    assert_ne!(storm::handler_of(first + 1), libc::SIG_DFL);
}

/// The forking thread continues in its section, under another id, and the child has a reporter of
/// its own.
#[test]
fn a_child_reports_its_own_stalls() {
    in_its_own_process!();
    own_stack().unwrap(); // there is a reporter, and the thread's id is known
    let domain = Domain::builder().name("in the child").build();
    tune(&domain, Some(LIMIT), None);
    let guard = domain.read();
    let parent = thread_id();
    in_child(|| {
        let (tell, told) = mpsc::channel();
        quiescence::report::set_stall_hook(move |report| tell.send(report.clone()).unwrap());
        domain.call(|| ()).unwrap();
        let report = told.recv().unwrap();
        let [holdout] = &report.holdouts[..] else { panic!("{report}") };
        assert_eq!(holdout.thread_id, Some(thread_id()));
        assert_ne!(holdout.thread_id, Some(parent));
        assert!(holdout.stack.is_ok(), "{report}");
    });
    drop(guard);
}

#[test]
fn forks_beside_reports() {
    in_its_own_process!();
    quiescence::report::set_stall_hook(|report| assert!(!report.to_string().is_empty()));
    let domains: Vec<Domain> = (0..20).map(|_| Domain::new()).collect();
    let readers: Vec<Qsbr<_>> = domains.iter().map(Domain::qsbr).collect();
    let fork_for_each = || {
        for domain in &domains {
            // A report of it is on its way when the fork comes.
            tune(domain, Some(Duration::ZERO), None);
            let _cookie = domain.start_poll();
            in_child(|| {
                drop(stall());
                let other = Domain::new();
                other.synchronize();
                drop(other.read());
            });
        }
    };
    common::beside(1, |_| || drop(stall()), fork_for_each);
    drop(readers);
}
