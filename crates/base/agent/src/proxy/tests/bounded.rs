//! How much of this process an agent may take.

use super::*;
use crate::request::{HELD, LARGEST};

#[test]
fn a_request_that_is_too_large_is_refused_before_it_is_read_and_stands_on_record() {
    let ground = Ground::new(None);
    let mut stream = UnixStream::connect(&ground.proxy.socket).unwrap();
    // Of the body nothing is sent: its length is enough.
    write!(stream, "POST /v1/responses HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", LARGEST + 1)
        .unwrap();
    let mut status = [0; 12];
    stream.read_exact(&mut status).unwrap();
    assert_eq!(&status, b"HTTP/1.1 413");
    assert_eq!(ground.lookups(), ["POST /v1/responses: the request is larger than 32 MiB"]);
    let many = format!("{{\"model\":\"m\",\"input\":[{}0]}}", "0,".repeat(1_000_000));
    assert_eq!(ground.ask("POST /v1/responses", "", many.as_bytes()), 413);
    assert!(ground.recorder.asked().is_empty());
}

#[test]
fn what_does_not_tell_its_length_is_read_within_the_same_bound() {
    let ground = Ground::new(None);
    let mut stream = UnixStream::connect(&ground.proxy.socket).unwrap();
    let head = "POST /v1/responses HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked";
    write!(stream, "{head}\r\n\r\n2\r\n{{}}\r\n0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let mut stream = UnixStream::connect(&ground.proxy.socket).unwrap();
    let endless = std::thread::spawn({
        let mut stream = stream.try_clone().unwrap();
        move || {
            let _ = write!(stream, "{head}\r\n\r\n");
            let chunk = [b"100000\r\n".as_slice(), &[b' '; 1 << 20], b"\r\n"].concat();
            // It ends when the other side does not take any more.
            while stream.write_all(&chunk).is_ok() {}
        }
    });
    let mut status = [0; 12];
    stream.read_exact(&mut status).unwrap();
    assert_eq!(&status, b"HTTP/1.1 413");
    drop(stream.shutdown(std::net::Shutdown::Both));
    endless.join().unwrap();
}

/// Asks for a path that is none, and reads the answer; the connection goes on.
fn look(stream: &mut UnixStream) {
    write!(stream, "GET /v1/files HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let mut answer = BufReader::new(stream);
    let mut line = String::new();
    let mut length = 0;
    while line != "\r\n" {
        line.clear();
        answer.read_line(&mut line).unwrap();
        length = line
            .to_lowercase()
            .strip_prefix("content-length: ")
            .map_or(length, |n| n.trim().parse().unwrap());
    }
    answer.read_exact(&mut vec![0; length]).unwrap();
}

#[test]
fn an_agent_has_a_bounded_number_of_connections_and_further_ones_wait_for_their_turn() {
    let ground = Ground::new(None);
    let connect = || UnixStream::connect(&ground.proxy.socket).unwrap();
    let mut held: Vec<UnixStream> = (0..CONNECTIONS).map(|_| connect()).collect();
    held.iter_mut().for_each(look);
    let mut further = connect();
    write!(further, "GET /v1/files HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    // Had it been taken, it would be answered by now: one thread answers all in turn.
    (0..100).for_each(|_| look(&mut held[0]));
    further.set_nonblocking(true).unwrap();
    let nothing = further.read(&mut [0; 1]).unwrap_err();
    assert_eq!(nothing.kind(), std::io::ErrorKind::WouldBlock);
    further.set_nonblocking(false).unwrap();
    held.pop();
    let mut answer = String::new();
    further.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
}

#[test]
fn requests_that_are_held_at_once_are_bounded_and_further_ones_wait_for_room() {
    let ground = Ground::new(None);
    let connect = || UnixStream::connect(&ground.proxy.socket).unwrap();
    let head = "POST /v1/responses HTTP/1.1\r\nHost: a\r\nConnection: close";
    // One that does not tell its length takes the room of the largest.
    let mut held: Vec<UnixStream> = (0..HELD / LARGEST).map(|_| connect()).collect();
    for stream in &mut held {
        write!(stream, "{head}\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{{\r\n").unwrap();
    }
    let mut other = connect();
    (0..100).for_each(|_| look(&mut other));
    let mut further = connect();
    write!(further, "{head}\r\nContent-Length: 2\r\n\r\n{{}}").unwrap();
    (0..100).for_each(|_| look(&mut other));
    further.set_nonblocking(true).unwrap();
    let nothing = further.read(&mut [0; 1]).unwrap_err();
    assert_eq!(nothing.kind(), std::io::ErrorKind::WouldBlock);
    further.set_nonblocking(false).unwrap();
    held.pop();
    let mut answer = String::new();
    further.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}
