//! Requests over loopback while the routes are replaced again and again.
//!
//! The text of each route is the number of its table. So each reply tells which table it is of: at
//! least the one that was there before the request, and at most the one that was there after the
//! reply.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use quiescence::Rcu;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::{Routes, runtime, serve};

/// How many routes a table has.
const ROUTES: u64 = 100;

/// What came of a load.
#[derive(Debug)]
pub struct Came {
    /// How many requests got a reply.
    pub requests: u64,
    /// How many tables there were.
    pub reloads: u64,
    /// From request to reply.
    times: Vec<Duration>,
}

impl fmt::Display for Came {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |share: f64| {
            let last = self.times.len().saturating_sub(1) as f64;
            self.times.get((last * share) as usize).copied().unwrap_or_default()
        };
        write!(
            f,
            "{} requests, {} reloads; each reply was of a table that was there\n\
             from request to reply: median {:?}, p99 {:?}, p99.9 {:?}",
            self.requests,
            self.reloads,
            of(0.5),
            of(0.99),
            of(0.999)
        )
    }
}

fn table(number: u64) -> Routes {
    let lines: String = (0..ROUTES).map(|route| format!("/{route} {number}\n")).collect();
    Routes::parse(&lines).expect("a path and a number a line")
}

/// Has so many clients ask a server of so many workers, in the same process, for this long.
///
/// # Errors
/// If a socket fails, or a reply is of no table that was there.
pub fn run(workers: usize, clients: usize, lasts: Duration) -> io::Result<Came> {
    let runtime = runtime(workers)?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let tables = Arc::new(Tables::default());
        let routes = Arc::new(Rcu::new(table(0)));
        let server = tokio::spawn(serve(listener, Arc::clone(&routes)));
        let clients: Vec<_> = (0..clients)
            .map(|seed| {
                let tables = Arc::clone(&tables);
                tokio::spawn(async move {
                    tables.ask(TcpStream::connect(address).await?, seed as u64).await
                })
            })
            .collect();
        let reloads = tokio::spawn({
            let tables = Arc::clone(&tables);
            async move { tables.reload(&routes).await }
        });

        tokio::time::sleep(lasts).await;
        tables.stop.store(true, SeqCst);
        let mut times = Vec::new();
        for client in clients {
            times.extend(client.await??);
        }
        times.sort_unstable();
        let reloads = reloads.await?;
        server.abort();
        Ok(Came { requests: times.len() as u64, reloads, times })
    })
}

/// Which tables there are.
#[derive(Debug, Default)]
struct Tables {
    /// Stored, and seen by each request that begins now.
    stored: AtomicU64,
    /// About to be stored.
    announced: AtomicU64,
    stop: AtomicBool,
}

impl Tables {
    async fn reload(&self, routes: &Rcu<Routes>) -> u64 {
        let mut number = 0;
        while !self.stop.load(SeqCst) {
            number += 1;
            self.announced.store(number, SeqCst);
            routes.store_async(table(number)).await;
            self.stored.store(number, SeqCst);
            tokio::task::yield_now().await;
        }
        number
    }

    async fn ask(&self, mut stream: TcpStream, seed: u64) -> io::Result<Vec<Duration>> {
        stream.set_nodelay(true)?;
        let mut times = Vec::new();
        let mut route = seed;
        while !self.stop.load(SeqCst) {
            route = (route + 7) % ROUTES;
            let least = self.stored.load(SeqCst);
            let began = Instant::now();
            let number = ask_once(&mut stream, route).await?;
            times.push(began.elapsed());
            let most = self.announced.load(SeqCst);
            if !(least..=most).contains(&number) {
                return Err(io::Error::other(format!(
                    "/{route} was of table {number}, where tables {least} to {most} were there"
                )));
            }
        }
        Ok(times)
    }
}

/// A request on a connection that stays. Returns the number in the reply's body.
async fn ask_once(stream: &mut TcpStream, route: u64) -> io::Result<u64> {
    let request = format!("GET /{route} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut reply = Vec::new();
    loop {
        if stream.read_buf(&mut reply).await? == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
        }
        if let Some(body) = body(&reply)? {
            let number = std::str::from_utf8(body).ok().and_then(|text| text.parse().ok());
            return number.ok_or_else(|| {
                io::Error::other(format!("no number in {}", String::from_utf8_lossy(&reply)))
            });
        }
    }
}

/// The body of a reply, once all of it is there.
fn body(reply: &[u8]) -> io::Result<Option<&[u8]>> {
    let Some(end) = reply.windows(4).position(|four| four == b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = String::from_utf8_lossy(&reply[..end]);
    if !head.starts_with("HTTP/1.1 200") {
        return Err(io::Error::other(format!("not what was asked for: {head}")));
    }
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    });
    let length: usize = length.ok_or_else(|| io::Error::other(format!("no length in {head}")))?;
    Ok(reply.get(end + 4..end + 4 + length))
}
