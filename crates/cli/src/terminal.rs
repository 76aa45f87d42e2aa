//! An interactive shell inside: a terminal of its own there, joined to ours. Ctrl-C and window sizes reach it as they would
//! reach any shell.

use std::fs::File;
use std::io::{IsTerminal, Read, Write};
use std::os::fd::{AsFd, AsRawFd};

use infradev_executor::Streams;
use nix::pty::{Winsize, openpty};
use nix::sys::termios::{SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr};
use tokio::signal::unix::{SignalKind, signal};

use crate::report::Failure;

/// Our side of the shell's streams. Dropped, it gives our terminal its old ways back.
pub struct Terminal {
    before: Option<Termios>,
}

/// Streams for a shell: our own where standard input is no terminal, else a new terminal joined to ours.
pub fn open() -> Result<(Streams, Terminal), Failure> {
    let failed = |error: std::io::Error| Failure::fault(format!("cannot open a terminal: {error}"));
    let stdin = std::io::stdin();
    let copy = |fd: &dyn AsFd| fd.as_fd().try_clone_to_owned();
    if !stdin.is_terminal() {
        let input = copy(&stdin).map_err(failed)?;
        let output = copy(&std::io::stdout()).map_err(failed)?;
        return Ok((Streams { input, output }, Terminal { before: None }));
    }
    let errno = |error: nix::errno::Errno| failed(error.into());
    let before = tcgetattr(&stdin).map_err(errno)?;
    let pair = openpty(None, Some(&before)).map_err(errno)?;
    let master = File::from(pair.master);
    pass_size(&master);
    let mut raw = before.clone();
    cfmakeraw(&mut raw);
    tcsetattr(&stdin, SetArg::TCSANOW, &raw).map_err(errno)?;
    let terminal = Terminal { before: Some(before) };
    join(master).map_err(failed)?;
    let input = pair.slave.try_clone().map_err(failed)?;
    Ok((Streams { input, output: pair.slave }, terminal))
}

/// Carries bytes both ways, on threads that end with this process or with the shell.
fn join(master: File) -> std::io::Result<()> {
    let (mut typed, mut shown, sized) = (master.try_clone()?, master.try_clone()?, master);
    let thread = |name: &str| std::thread::Builder::new().name(name.into());
    thread("terminal-in").spawn(move || carry(&mut std::io::stdin(), &mut typed))?;
    thread("terminal-out").spawn(move || carry(&mut shown, &mut std::io::stdout()))?;
    let mut resized = signal(SignalKind::window_change())?;
    tokio::spawn(async move {
        while resized.recv().await.is_some() {
            pass_size(&sized);
        }
    });
    Ok(())
}

fn carry(from: &mut dyn Read, to: &mut dyn Write) {
    let mut buffer = [0; 4096];
    // The other end is gone when the shell has ended.
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if to.write_all(&buffer[..count]).and_then(|()| to.flush()).is_err() {
            break;
        }
    }
}

/// Gives the inner terminal the size of ours.
fn pass_size(master: &File) {
    let mut size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: both descriptors are open for the whole call, and `size` is a valid place for the kernel's structure.
    unsafe {
        nix::libc::ioctl(std::io::stdin().as_raw_fd(), nix::libc::TIOCGWINSZ, &raw mut size);
        nix::libc::ioctl(master.as_raw_fd(), nix::libc::TIOCSWINSZ, &raw const size);
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = tcsetattr(std::io::stdin(), SetArg::TCSANOW, before);
        }
    }
}
