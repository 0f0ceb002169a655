//! Reads what threads run from the texts in `worlds/programs`, for a scenario and a mutant.
//!
//! A line that is not indented begins an item, of which the indented lines after it are the rest:
//! `const NAME NUMBER`; `place NAME`, one word of memory or, with a number behind it, several, and
//! what they are at the start; `objects` and `handler`, fields of a [`Plan`]; `end`, what must hold
//! in the end; `def`, a name for some lines, with parameters; and `thread`, the program of the
//! readers, the writers, the strangers or one other thread, with a name for traces.
//!
//! A program has an instruction a line, after labels, if any. In an address such as
//! `lock[index*2+here]` the register `index` and the number of this CPU say which word it is. A
//! line ends with conditions: `?a|b` holds if one of these is the mutant or true of the scenario,
//! `!a|b` if none is. An order such as `acquire/a|b` is relaxed if one is. A label that begins with
//! a dot is the own one of each use of a `def`.

use core::sync::atomic::Ordering;
use std::collections::HashMap;

use serde::Deserialize;

use super::Mutant;
use super::code::{At, Code, How, Op, REGS, Reg, Unless, Value};
use super::scenario::{Scenario, Subject};
use super::world::{End, Place, Plan, Program, Term};
use crate::harness::variant;
use crate::memory::LOCATIONS;

const COMMON: &str = include_str!("../../worlds/programs/common.txt");

impl Subject {
    const fn text(self) -> &'static str {
        match self {
            Self::Snapshot => include_str!("../../worlds/programs/snapshot.txt"),
            Self::Guard => include_str!("../../worlds/programs/guard.txt"),
            Self::Counts | Self::TwoStepCounts => include_str!("../../worlds/programs/counts.txt"),
            Self::Growing => include_str!("../../worlds/programs/growing.txt"),
            Self::LocalGlobal => include_str!("../../worlds/programs/local-global.txt"),
            Self::ExactCounter => include_str!("../../worlds/programs/exact-counter.txt"),
            Self::FoldingCounter | Self::FoldingLock => {
                include_str!("../../worlds/programs/folding.txt")
            }
            Self::BigRef => include_str!("../../worlds/programs/big-ref.txt"),
        }
    }
}

type Line = Vec<String>;

/// Lines with a name, and their parameters.
#[derive(Clone, Debug)]
struct Definition {
    parameters: Line,
    body: Vec<Line>,
}

struct Assembler<'a> {
    scenario: &'a Scenario,
    mutant: Option<Mutant>,
    constants: HashMap<&'static str, u64>,
    definitions: HashMap<&'static str, Definition>,
    /// How often one was used.
    uses: usize,
    plan: Plan,
}

/// What a scenario explores, with a mutant.
pub(super) fn plan(scenario: &Scenario, mutant: Option<Mutant>) -> Plan {
    let there = |cpu| (0..scenario.readers).filter(|index| index % scenario.cpus == cpu).count();
    let constants = HashMap::from([
        ("aborts-max", u64::from(scenario.aborts_max)),
        ("strangers", u64::from(scenario.strangers)),
        ("holders-of-0", there(0) as u64),
        ("holders-of-1", there(1) as u64),
    ]);
    let plan = Plan {
        programs: Vec::new(),
        shared_cpus: usize::from(scenario.cpus),
        places: Vec::new(),
        initial: [0; LOCATIONS],
        objects: 1,
        handler: None,
        faults: scenario.faults,
        disturbances_max: None,
        end: End::Any,
    };
    let definitions = HashMap::new();
    let mut assembler = Assembler { scenario, mutant, constants, definitions, uses: 0, plan };
    let mut items: Vec<(&str, Vec<Line>)> = Vec::new();
    for line in COMMON.lines().chain(scenario.subject.text().lines()) {
        let line = line.split('#').next().unwrap_or_default().trim_end();
        match items.last_mut() {
            _ if line.trim().is_empty() => {}
            Some((_, body)) if line.starts_with(' ') => {
                body.push(line.split_whitespace().map(str::to_owned).collect());
            }
            _ => items.push((line, Vec::new())),
        }
    }
    items.into_iter().for_each(|(head, body)| assembler.item(head, body));
    assembler.plan
}

impl Assembler<'_> {
    fn item(&mut self, head: &'static str, body: Vec<Line>) {
        let mut words: Vec<&'static str> = head.split_whitespace().collect();
        if !self.holds(&mut words) {
            return;
        }
        match *words {
            ["const", name, number] => {
                let number = self.number(number);
                self.constants.insert(name, number);
            }
            ["place", name] => self.place(name, 1, &[]),
            ["place", name, "=", ref values @ ..] => self.place(name, 1, values),
            ["place", name, count] => self.place(name, self.number(count) as usize, &[]),
            ["place", name, count, "=", ref values @ ..] => {
                self.place(name, self.number(count) as usize, values);
            }
            ["objects", count] => self.plan.objects = self.number(count) as u8,
            ["handler", name] => self.plan.handler = Some(self.found(name).first),
            ["end", "released"] => self.plan.end = End::Released,
            ["end", "all-but-the-last", name] => {
                self.plan.end = End::AllButTheLast(self.at(name).fixed());
            }
            ["end", ref words @ ..] => {
                let mut sides = words.split(|word| *word == "=");
                let mut side = || sides.next().into_iter().flatten().map(|term| self.term(term));
                self.plan.end = End::Equal([side().collect(), side().collect()]);
            }
            ["def", name, ref parameters @ ..] => {
                let parameters = parameters.iter().map(|one| (*one).to_owned()).collect();
                self.definitions.insert(name, Definition { parameters, body });
            }
            ["thread", role, name] => self.thread(role, name, &body),
            _ => panic!("not an item: {head}"),
        }
    }

    /// Takes the conditions off a line. Whether they hold.
    fn holds<W: AsRef<str>>(&self, words: &mut Vec<W>) -> bool {
        let mut holds = true;
        words.retain(|word| {
            let word = word.as_ref();
            let Some(names) = word.strip_prefix(['?', '!']) else { return true };
            holds &= self.is_one(names) == word.starts_with('?');
            false
        });
        holds
    }

    fn is_one(&self, names: &str) -> bool {
        names.split('|').filter(|name| self.is(name)).count() != 0
    }

    fn is(&self, name: &str) -> bool {
        let scenario = self.scenario;
        match name {
            "portable" => scenario.is_portable,
            "straggles" => scenario.straggles,
            "strangers" => scenario.strangers != 0,
            "two-cpus" => scenario.cpus == 2,
            _ => match (variant(name), variant(name)) {
                (Some(mutant), _) => self.mutant == Some(mutant),
                (_, Some(subject)) => scenario.subject == subject,
                _ => panic!("no mutant and no subject is called {name}"),
            },
        }
    }

    fn place(&mut self, name: &'static str, count: usize, values: &[&str]) {
        let first = self.plan.places.last().map_or(0, |last| last.first + last.count);
        self.plan.places.push(Place { name, first, count });
        for (at, value) in (first..).zip(values) {
            self.plan.initial[at] = self.number(value);
        }
    }

    fn found(&self, name: &str) -> Place {
        let found = self.plan.places.iter().find(|place| place.name == name);
        *found.unwrap_or_else(|| panic!("no place is called {name}"))
    }

    fn thread(&mut self, role: &str, name: &'static str, body: &[Line]) {
        let mut code = Code::default();
        self.emit(&mut code, body);
        let of = self.scenario;
        let after = of.cpus + of.writers;
        let (count, rounds, cpu, moves) = match role {
            "reader" => (of.readers, of.rounds, 0, !of.readers_stay),
            "writer" if of.writer_moves => (of.writers, of.updates, 0, true),
            "writer" => (of.writers, of.updates, of.cpus, false),
            "stranger" => (of.strangers, of.rounds, after, false),
            _ => (1, 0, after, false),
        };
        for index in 0..count {
            let cpu = if role == "reader" { index % of.cpus } else { cpu + index };
            let mut regs = [0; REGS];
            regs[Reg::Left as usize] = u64::from(rounds);
            self.plan.programs.push(Program { name, code: code.clone(), regs, cpu, moves });
        }
    }

    /// Adds lines to a program.
    fn emit(&mut self, code: &mut Code, body: &[Line]) {
        for line in body {
            let mut words: Vec<&str> = line.iter().map(String::as_str).collect();
            if !self.holds(&mut words) {
                continue;
            }
            while let Some(label) = words.first().and_then(|word| word.strip_suffix(':')) {
                code.place(label);
                words.remove(0);
            }
            let Some(name) = words.first() else { continue };
            match self.definitions.get(*name).cloned() {
                Some(definition) => self.expand(code, &definition, &words[1..]),
                None => self.op(code, &words),
            }
        }
    }

    fn expand(&mut self, code: &mut Code, definition: &Definition, arguments: &[&str]) {
        let Definition { parameters, body } = definition;
        assert_eq!(parameters.len(), arguments.len(), "{parameters:?} are {arguments:?}");
        self.uses += 1;
        let given = |word: &String| match parameters.iter().position(|one| one == word) {
            Some(index) => arguments[index].to_owned(),
            None if word.starts_with('.') => format!("{}{word}", self.uses),
            None => word.clone(),
        };
        let body: Vec<Line> = body.iter().map(|line| line.iter().map(given).collect()).collect();
        self.emit(code, &body);
    }

    fn op(&self, code: &mut Code, words: &[&str]) {
        let op = match *words {
            ["arm", start, end, abort] => {
                let [start, end, abort] = [start, end, abort].map(|name| code.label(name));
                Op::Arm { start, end, abort }
            }
            ["number"] => Op::CpuNumber,
            [how @ ("load" | "plus" | "minus"), to, ref places @ .., order] => {
                let how = match how {
                    "load" => How::Take,
                    "plus" => How::Add,
                    _ => How::Subtract,
                };
                let (to, order) = (reg(to), self.order(order));
                let load = |at: &&str| code.op(Op::Load { to, how, at: self.at(at), order });
                return places.iter().for_each(load);
            }
            ["store", at, value, order] => {
                Op::Store { at: self.at(at), value: self.value(value), order: self.order(order) }
            }
            ["add", at, by, order] => {
                Op::Add { at: self.at(at), by: self.number(by), order: self.order(order) }
            }
            ["locked-add", at, by, before, order] => {
                self.locked_add((at, by), Unless::Never, before, order)
            }
            ["locked-add-unless-is", at, by, value, before, order] => {
                self.locked_add((at, by), Unless::Is(self.number(value)), before, order)
            }
            ["locked-add-unless-bits", at, by, bits, before, order] => {
                self.locked_add((at, by), Unless::Has(self.number(bits)), before, order)
            }
            ["swap", at, value, before, order] => {
                let (at, value, order) = (self.at(at), self.value(value), self.order(order));
                Op::Swap { at, value, before: reg(before), order }
            }
            ["read-out", at] => Op::ReadOut(self.at(at).fixed()),
            ["fence"] => Op::Fence,
            ["barrier", kind] => Op::Barrier(word(kind)),
            ["new", to] => Op::New(reg(to)),
            ["new-at", object] => Op::NewAt(self.number(object) as u8),
            ["touch", object] => Op::Touch(reg(object)),
            ["free", object] => Op::Free(reg(object)),
            ["lock", at] => Op::Lock(self.at(at).fixed()),
            ["unlock", at] => Op::Unlock(self.at(at).fixed()),
            ["sleep", at, seen] => Op::Sleep(self.at(at).fixed(), reg(seen)),
            ["await", at, seen] => Op::Await(self.at(at).fixed(), reg(seen)),
            ["wake", at] => Op::Wake(self.at(at).fixed()),
            ["request"] => Op::Request,
            ["drive", check, flip, idle] => {
                let [check, flip, idle] = [check, flip, idle].map(|name| code.label(name));
                Op::Drive { check, flip, idle }
            }
            ["checked"] => Op::Checked,
            ["flipped"] => Op::Flipped,
            ["exact", found] => Op::IsExact(reg(found)),
            ["counted"] => Op::Counted,
            ["set", to, value] => Op::Set(reg(to), self.value(value)),
            ["clear", ref regs @ ..] => {
                let clear = |of: &&str| code.op(Op::Set(reg(of), Value::Is(0)));
                return regs.iter().for_each(clear);
            }
            ["raise", to, by] => Op::Plus(reg(to), self.value(by)),
            ["if-is", of, value, to] => Op::IfIs(reg(of), self.number(value), code.label(to)),
            ["if-not", of, value, to] => Op::IfNot(reg(of), self.number(value), code.label(to)),
            ["if-none", of, bits, to] => Op::IfBitless(reg(of), self.number(bits), code.label(to)),
            ["goto", to] => Op::Goto(code.label(to)),
            _ => panic!("not an instruction: {words:?}"),
        };
        code.op(op);
    }

    fn locked_add(&self, (at, by): (&str, &str), unless: Unless, before: &str, order: &str) -> Op {
        let (at, by, order) = (self.at(at), self.value(by), self.order(order));
        Op::LockedAdd { at, by, unless, before: reg(before), order }
    }

    fn order(&self, text: &str) -> Ordering {
        let (order, relaxed) = text.split_once('/').unwrap_or((text, ""));
        match order {
            _ if !relaxed.is_empty() && self.is_one(relaxed) => Ordering::Relaxed,
            "relaxed" => Ordering::Relaxed,
            "acquire" => Ordering::Acquire,
            "release" => Ordering::Release,
            "acq-rel" => Ordering::AcqRel,
            _ => panic!("not an order: {text}"),
        }
    }

    fn at(&self, text: &str) -> At {
        let (name, index) = text.split_once('[').unwrap_or((text, "0]"));
        let Place { first, count, .. } = self.found(name);
        let mut at = At { first, count, offset: 0, by: None, is_own: false };
        for term in index.trim_end_matches(']').split('+') {
            let (factor, times) = term.split_once('*').unwrap_or((term, "1"));
            match variant::<Reg>(factor) {
                Some(reg) => at.by = Some((reg, self.number(times) as usize)),
                None if term == "here" => at.is_own = true,
                None => at.offset += self.number(term) as usize,
            }
        }
        at
    }

    fn value(&self, text: &str) -> Value {
        variant(text).map_or_else(|| Value::Is(self.number(text)), Value::In)
    }

    /// A sum of numbers and constants, of either sign.
    fn number(&self, text: &str) -> u64 {
        let term = |term: &str| {
            let name = term.trim_start_matches('-');
            let known = self.constants.get(name).copied().or_else(|| name.parse().ok());
            let number: u64 = known.unwrap_or_else(|| panic!("not a number: {text}"));
            if name == term { number } else { number.wrapping_neg() }
        };
        text.split('+').map(term).fold(0, u64::wrapping_add)
    }

    fn term(&self, text: &str) -> Term {
        match text {
            "counted" => Term::Counted,
            "handled" => Term::Handled,
            _ => match self.plan.places.iter().find(|place| place.name == text) {
                Some(place) => Term::At(*place),
                None => Term::Is(self.number(text)),
            },
        }
    }
}

fn word<T: for<'de> Deserialize<'de>>(name: &str) -> T {
    variant(name).unwrap_or_else(|| panic!("unknown: {name}"))
}

fn reg(name: &str) -> Reg {
    word(name)
}
