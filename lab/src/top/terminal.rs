//! The terminal while `rcu top` draws on it: keys come at once and are not shown.

use std::io::{self, IsTerminal};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// Standard input without line editing; as it was before when dropped.
pub(super) struct Keyboard(Termios);

impl Keyboard {
    /// If it is a terminal.
    pub(super) fn open() -> Option<Keyboard> {
        let stdin = io::stdin();
        let before = stdin.is_terminal().then(|| tcgetattr(&stdin).ok())??;
        let mut now = before.clone();
        now.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        // Without it keys come line by line: Ctrl-C still ends the command.
        let _ = tcsetattr(&stdin, OptionalActions::Now, &now);
        Some(Keyboard(before))
    }

    /// The key that was pressed, if one was.
    pub(super) fn key(&self) -> Option<u8> {
        let stdin = io::stdin();
        let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
        let ready = poll(&mut fds, Some(&Timespec::default())).is_ok_and(|ready| ready > 0);
        let mut key = [0];
        // Past the buffer of `Stdin`, which would hold keys back from `poll`.
        let count = if ready { rustix::io::read(&stdin, &mut key).ok()? } else { 0 };
        (count == 1).then_some(key[0])
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        // A terminal that has gone needs nothing restored.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.0);
    }
}
