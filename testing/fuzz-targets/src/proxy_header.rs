use std::{
    io,
    net::SocketAddr,
    pin::pin,
    task::{Context, Poll, Waker},
};

use blindfold_rpc::proxied_for;

/// The longest header: of version 2, with all that proxies may add.
const MAX_BYTES: usize = 16 + 2_048;

/// What the header says, and its length.
fn read(bytes: &[u8]) -> io::Result<(Option<SocketAddr>, usize)> {
    let mut left = bytes;
    let read = {
        let future = pin!(proxied_for(&mut left));
        match future.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(read) => read,
            Poll::Pending => unreachable!("bytes in memory are there"),
        }
    };
    read.map(|source| (source, bytes.len() - left.len()))
}

/// PROXY protocol headers: one is read to its end and no further, whatever follows, its address is canonical, and nothing
/// panics.
///
/// Input: what a connection begins with.
pub fn proxy_header(input: &[u8]) {
    let Ok((source, length)) = read(input) else { return };
    assert!(length <= MAX_BYTES);
    assert!(source.is_none_or(|source| source.ip() == source.ip().to_canonical()));
    let (header, _) = input.split_at(length);
    assert_eq!(read(header).ok(), Some((source, length)), "what follows says nothing");
    let cut = read(&header[..length - 1]).err().map(|error| error.kind());
    assert_eq!(cut, Some(io::ErrorKind::UnexpectedEof), "nothing of a header is left out");
}
