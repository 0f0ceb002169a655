//! The names of things: kinds of readers, ways to update, kinds of faults.

use serde::Serialize;

/// An enum whose variants have a name for people and for JSON, and a number for atomics.
pub(crate) trait Named: Copy + Serialize + 'static {
    /// What a variant is called in JSON, beside its count.
    const KEY: &'static str;
    /// All of them, in the order of their numbers.
    const ALL: &[Self];
    const NAMES: &[&'static str];

    fn index(self) -> usize;

    fn name(self) -> &'static str {
        Self::NAMES[self.index()]
    }
}

/// Declares such an enum.
macro_rules! named {
    ($(#[$meta:meta])* $name:ident, $key:literal { $($variant:ident = $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum $name {
            $($variant,)+
        }

        impl Named for $name {
            const KEY: &'static str = $key;
            const ALL: &[Self] = &[$(Self::$variant,)+];
            const NAMES: &[&'static str] = &[$($text,)+];

            fn index(self) -> usize {
                self as usize
            }
        }

        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        }
    };
}

named! {
    /// How a reader reads.
    ReaderKind, "kind" {
        Read = "read()",
        Nested = "nested sections",
        Handle = "Reader handle",
        Qsbr = "QSBR",
        Passing = "short-lived thread",
        Destructor = "first read in a thread-local destructor",
        Updater = "closure of an update",
        Srcu = "Srcu::read()",
        SrcuNested = "nested Srcu sections",
        SrcuOverlapping = "Srcu sections that overlap",
        SrcuElsewhere = "Srcu guard that ended on another thread",
        SrcuLong = "long Srcu section",
        SrcuTask = "Srcu guard across .await",
    }
}

named! {
    /// How an updater waits for its grace period, or has it waited for.
    Way, "way" {
        Synchronize = "synchronize",
        Expedited = "synchronize_expedited",
        StartPoll = "start_poll and poll",
        SnapshotWait = "snapshot and wait",
        Call = "call",
        Retire = "retire",
        RetireInSection = "retire inside a section",
        Barrier = "call and barrier",
        Store = "Rcu::store",
        Swap = "Rcu::swap",
        IntoBox = "Rcu::swap and into_box",
        Update = "Rcu::update",
        Take = "RcuOption::take",
        QsbrSynchronize = "Qsbr::synchronize",
        Passing = "retire and exit the thread",
        TryRetire = "try_retire inside a section",
        Awaited = "synchronize_async",
        CookieAwaited = "snapshot and wait_async",
        TaskAwaited = "synchronize_async in a task",
    }
}

named! {
    /// What can be found wrong.
    FaultKind, "kind" {
        Age = "age above 1",
        Payload = "wrong payload",
        EarlyEnd = "grace period ended inside a section",
        Barrier = "barrier returned too early",
        Count = "lost callback, object or block",
        Limit = "limit exceeded",
        Room = "room lost, or created",
        Order = "callbacks out of order",
        Late = "not freed in time",
        Process = "child process",
        Torn = "words of different values",
        Freed = "value dropped too early, twice or never",
        Sum = "wrong sum",
        Exclusion = "not excluded",
        History = "history that no map can have",
        Stuck = "stuck",
        Panic = "panic",
    }
}

named! {
    /// What the parts of the other themes than `readers` do. Those of a theme stand together: it
    /// names the first and the last (`Theme::operations`).
    Operation, "operation" {
        LowPriority = "reader of low priority",
        Blocked = "reader that blocks in its section",
        Refused = "refused, and retired later",
        Room = "limit filled to the last object",
        Settled = "limit settled after a section",
        Box = "box",
        LargeBox = "large box",
        Arc = "Arc",
        Vector = "vector",
        Sized = "retire_sized",
        Bundle = "small value",
        LargeBundle = "large value",
        Closure = "small closure",
        LargeClosure = "large closure",
        Odd = "zero-sized box and odd word",
        Chain = "object whose drop retires another",
        InSection = "retire inside a section",
        TryRetire = "try_retire",
        QsbrRetire = "retire by a QSBR reader",
        Again = "closure that queues itself again",
        InSectionCall = "call inside a section",
        Hurried = "call_hurry",
        TryCall = "try_call",
        DeferBarrier = "barrier",
        Tune = "tune",
        LeftAlone = "left alone until all was freed",
        DomainEnd = "domain ended with callbacks",
        ThreadEnd = "thread ended with callbacks",
        LastWords = "deferred in a thread-local destructor",
        ShortThread = "short-lived thread",
        ChildStart = "start of a child process",
        Child = "child process",
        Stopped = "child process stopped and continued",
        Fork = "fork in a storm",
        Shuffled = "thread moved to other CPUs",
        Signalled = "signal to a thread",
        Grown = "small domain that grew",
        Beside = "grace period during a section of another domain",
        Abandoned = "future dropped half-way",
        SnapshotLoad = "Snapshot::load",
        SnapshotStore = "Snapshot::store",
        SnapshotSwap = "Snapshot::swap",
        SnapshotUpdate = "Snapshot::update",
        SeqRead = "SeqLock::read",
        SeqWrite = "SeqLock::update",
        LatchRead = "Latch::read",
        LatchWrite = "Latch::update",
        ArcLoad = "ArcCell::load",
        ArcElsewhere = "ArcGuard that ended on another thread",
        ArcShort = "thread with guards that outlive it",
        ArcCache = "Cache::load",
        ArcStore = "ArcCell::store",
        ArcSwap = "ArcCell::swap",
        ArcCompare = "ArcCell::compare_and_swap",
        ArcRcu = "ArcCell::rcu",
        ArcOption = "ArcCellOption::swap",
        ArcTake = "ArcCellOption::take",
        ArcShared = "one Arc in two cells",
        HazardProtect = "HazardPointer::protect",
        HazardRetire = "HazardDomain::retire",
        HazardDomainEnd = "hazard domain ended with something protected",
        ExactLoad = "ExactCell::load",
        ExactElsewhere = "ExactGuard that ended on another thread",
        ExactStore = "ExactCell::store",
        ExactSwap = "ExactCell::swap",
        ExactCompare = "ExactCell::compare_and_swap",
        ExactRcu = "ExactCell::rcu",
        ExactOption = "ExactCell<Option>::swap",
        ExactShared = "one Arc in two exact cells",
        EpochPin = "epoch::pin and loads",
        EpochRepin = "Guard::repin",
        EpochExchange = "exchange of epoch::Atomic",
        EpochDefer = "Guard::defer",
        EpochDestroy = "Guard::defer_destroy",
        EpochFlush = "Guard::flush",
        CounterAdd = "addition to counters",
        ExactSum = "exact sum under load",
        LimitAdd = "LimitCounter::try_add",
        LimitRefused = "LimitCounter::try_add refused",
        BigRefGet = "BigRef::try_get",
        BigRefKill = "BigRef::kill",
        LockRead = "LocalGlobalLock::read",
        LockWrite = "LocalGlobalLock::write",
        LockElsewhere = "LocalGlobalLock guard that ended on another thread",
        ListRead = "traversal of a List",
        ListUpdate = "update of a List",
        QueuePop = "Queue::pop",
        StackPop = "Stack::pop",
        StackAll = "Stack::pop_all",
        IdUse = "use of an id table",
        IdGet = "IdMap::get",
        IdInsert = "IdMap::insert_with",
        IdRemove = "IdMap::remove",
        IdReplace = "IdMap::replace",
        IdMark = "IdMap::set_mark and clear_mark",
        IdSearch = "IdMapRef::marked",
        MapGet = "look-up in a map",
        MapWalk = "walk over a map",
        MapInsert = "insertion into a map",
        MapRemove = "removal from a map",
        MapUpdate = "update of a map",
        MapCompute = "HashMapRef::compute",
        MapRetain = "HashMap::retain",
        MapResize = "map that grew or shrank",
        MapHistory = "history of a key checked",
        MapEnd = "map that ended",
        MapRefused = "update of a map refused at the limit",
    }
}

impl Way {
    /// The ways that are so.
    pub(crate) fn all(are: fn(Self) -> bool) -> Vec<Self> {
        Self::ALL.iter().copied().filter(|way| are(*way)).collect()
    }

    /// Whether it needs a thread of its own: an updater does not draw it.
    pub(crate) fn is_alone(self) -> bool {
        matches!(self, Self::QsbrSynchronize | Self::Passing | Self::TaskAwaited)
    }

    /// Whether it is one of domains whose readers are registered threads.
    pub(crate) fn is_of_threads(self) -> bool {
        self.index() < Self::TryRetire.index()
    }

    /// Whether it is one of sleepable domains.
    pub(crate) fn is_of_sleepable(self) -> bool {
        !matches!(self, Self::QsbrSynchronize | Self::Passing | Self::RetireInSection)
    }
}

impl ReaderKind {
    /// Whether it reads in sleepable domains; what the closure of an update reads may be in both.
    pub(crate) fn is_of_sleepable(self) -> bool {
        self.index() >= Self::Srcu.index() || self == Self::Updater
    }

    /// Whether it reads in domains of registered threads.
    pub(crate) fn is_of_threads(self) -> bool {
        self.index() < Self::Srcu.index()
    }
}

/// What a thread of the torture is doing, for the report of one that is stuck.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Step {
    /// It begins.
    #[default]
    Start,
    /// It reads.
    Read,
    /// It waits for a thread that it started to end.
    WaitForThread,
    /// It waits for old blocks to become free.
    WaitForBlocks,
    /// It updates.
    Update(Way),
    /// It defers.
    Defer(Operation),
}

impl Step {
    pub(crate) fn describe(self) -> String {
        match self {
            Self::Start => "beginning".to_owned(),
            Self::Read => "reading".to_owned(),
            Self::WaitForThread => "waiting for a thread that it started to end".to_owned(),
            Self::WaitForBlocks => "waiting for old blocks to become free".to_owned(),
            Self::Update(way) => format!("updating by {}", way.name()),
            Self::Defer(operation) => format!("at \"{}\"", operation.name()),
        }
    }
}
