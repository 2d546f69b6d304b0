//! A callback answers that there was progress which nobody has recorded.

use super::both;
use crate::common::{Record, TICK, manual, ms};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use wheelwork::idle::{Answer, IdleEvent, IdleKind, IdlePolicy, IdleTimeouts, Outgoing};

fn policies() -> [(IdleKind, IdlePolicy); 4] {
    [
        (IdleKind::Reader, IdlePolicy::new().reader(ms(250))),
        (IdleKind::Writer, IdlePolicy::new().writer(ms(250))),
        (IdleKind::Both, both(250)),
        (IdleKind::WaitingWrite, IdlePolicy::new().waiting_write(ms(250))),
    ]
}

#[test]
fn progress_restarts_the_time_and_counts_as_no_report() {
    for (kind, policy) in policies() {
        let (timer, clock) = manual();
        let events = Record::new();
        let record = events.clone();
        let idle = IdleTimeouts::new(&timer, move |left: &mut u32, event| {
            record.push(event);
            *left -= 1;
            if *left > 0 { Answer::Progressed } else { Answer::StopWatching }
        });
        let watch = idle.watch(4, &policy).unwrap();
        watch.record_waiting_write();
        for report in 1..=4 {
            clock.advance_in_one_jump(2 * TICK);
            assert_eq!(events.len(), report - 1, "{kind:?}");
            clock.advance_in_one_jump(TICK);
            assert_eq!(events.len(), report, "{kind:?}");
        }
        let firsts = events.take().into_iter().map(|event: IdleEvent| event.first);
        assert_eq!(firsts.collect::<Vec<_>>(), [true, false, false, false], "{kind:?}");
        assert_eq!((idle.reported(kind), idle.watched()), (1, 0));
        assert!(watch.silent_for() >= ms(300));
    }
}

#[test]
fn after_a_recorded_activity_a_report_is_the_first_again() {
    let (timer, clock) = manual();
    let events = Record::new();
    let record = events.clone();
    let idle = IdleTimeouts::new(&timer, move |_: &mut (), event: IdleEvent| {
        record.push(event.first);
        Answer::Progressed
    });
    let watch = idle.watch((), &both(250)).unwrap();
    clock.advance_in_one_jump(3 * TICK);
    clock.advance_in_one_jump(3 * TICK);
    clock.advance_in_one_jump(TICK);
    watch.record_write();
    clock.advance_in_one_jump(3 * TICK);
    assert_eq!(events.take(), [true, false, true]);
}

/// Else a callback that forgets its last look at a first report would find progress for ever.
#[test]
fn progress_that_ends_several_kinds_of_silence_leaves_none_of_them_a_first_report() {
    let all_of_writes = both(250).writer(ms(250)).waiting_write(ms(250));
    for policy in [all_of_writes, both(250).reader(ms(250))] {
        let (timer, clock) = manual();
        let events = Record::new();
        let record = events.clone();
        let idle = IdleTimeouts::new(&timer, move |_: &mut (), event: IdleEvent| {
            record.push(event.first);
            Answer::Progressed
        });
        let watch = idle.watch((), &policy).unwrap();
        watch.record_waiting_write();
        (0..4).for_each(|_| clock.advance_in_one_jump(3 * TICK));
        assert_eq!(events.take(), [true, false, false, false], "{policy:?}");
        watch.touch();
        clock.advance_in_one_jump(3 * TICK);
        assert_eq!(events.take(), [true], "{policy:?}");
    }
}

#[test]
fn an_age_knows_no_progress() {
    let (timer, clock) = manual();
    let idle = IdleTimeouts::new(&timer, |_: &mut (), _| Answer::Progressed);
    let watch = idle.watch((), &IdlePolicy::new().max_age(3 * TICK, 2 * TICK)).unwrap();
    clock.advance_in_one_jump(3 * TICK);
    assert_eq!((idle.reported(IdleKind::Age), idle.watched()), (1, 1));
    assert_eq!(watch.silent_for(), 3 * TICK);
    clock.advance_in_one_jump(2 * TICK);
    assert_eq!(idle.reported(IdleKind::Age), 2);
    timer.stop().unwrap();
    assert_eq!(idle.watched(), 0);
}

#[test]
fn progress_does_not_put_off_an_age() {
    let (timer, clock) = manual();
    let idle = IdleTimeouts::new(&timer, |_: &mut (), _| Answer::Progressed);
    let watch = idle.watch((), &both(250).max_age(5 * TICK, None)).unwrap();
    clock.advance_in_one_jump(3 * TICK);
    assert!(watch.silent_for() < TICK, "there was progress");
    clock.advance_in_one_jump(2 * TICK);
    assert_eq!(idle.reported(IdleKind::Age), 1);
}

struct Connection {
    stream: Arc<TcpStream>,
    untaken: u64,
    peer: Arc<Peer>,
}

/// What the test knows of the other end.
#[derive(Default)]
struct Peer {
    /// It has read since the last event. The writer may have filled the socket again to the same byte, which looks like no
    /// progress.
    has_read: AtomicBool,
    /// How often an event has found more or fewer bytes in the socket than the event before.
    progressed: AtomicUsize,
    is_cut: AtomicBool,
}

/// As on the page of `Answer::Progressed`.
fn on_idle(connection: &mut Connection, event: IdleEvent) -> Answer {
    if event.first {
        connection.untaken = 0;
    }
    let untaken = connection.stream.untaken().unwrap_or(0);
    let has_changed = std::mem::replace(&mut connection.untaken, untaken) != untaken;
    connection.peer.progressed.fetch_add(has_changed.into(), Ordering::SeqCst);
    if has_changed | connection.peer.has_read.swap(false, Ordering::SeqCst) {
        return Answer::Progressed;
    }
    connection.peer.is_cut.store(true, Ordering::SeqCst);
    connection.stream.shutdown(Shutdown::Both).unwrap();
    Answer::StopWatching
}

/// A thread that blocks in its writes, on a real socket and a manual clock.
#[cfg(any(target_os = "linux", target_vendor = "apple"))]
#[test]
fn a_thread_that_writes_to_a_slow_reader_goes_on_and_one_that_writes_to_nobody_ends() {
    let (timer, clock) = manual();
    let idle = IdleTimeouts::new(&timer, on_idle);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut far = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let stream = Arc::new(listener.accept().unwrap().0);
    let peer = Arc::new(Peer::default());
    let connection = Connection { stream: stream.clone(), untaken: 0, peer: peer.clone() };
    let watch = idle.watch(connection, &IdlePolicy::new().waiting_write(ms(250))).unwrap();
    watch.record_waiting_write();
    let near = stream.clone();
    let writer = thread::spawn(move || {
        while (&*near).write_all(&[0; 64 * 1024]).is_ok() {
            watch.record_write();
            watch.record_waiting_write();
        }
    });
    for _ in 0..20 {
        let mut before = stream.untaken();
        let mut taken = 0;
        while taken < 20 {
            assert!(far.read(&mut [0; 4096]).unwrap() > 0);
            let now = stream.untaken();
            taken += u32::from(now != before);
            before = now;
        }
        peer.has_read.store(true, Ordering::SeqCst);
        clock.advance_in_one_jump(3 * TICK);
        assert!(!peer.is_cut.load(Ordering::SeqCst));
    }
    assert!(peer.progressed.load(Ordering::SeqCst) > 0);
    while !peer.is_cut.load(Ordering::SeqCst) {
        clock.advance_in_one_jump(3 * TICK);
    }
    writer.join().unwrap();
}
