//! The guide: a chapter for each use, in reading order. Most end with a whole small program.
//!
//! | to do this | read |
//! |---|---|
//! | answer each request in time, or give up | [Request deadlines](request_deadlines) |
//! | close connections that are silent | [Idle connections](idle_connections) |
//! | ping WebSocket clients | [WebSocket pings](websocket_pings) |
//! | limit what an HTTP server waits for, or the calls of a client | [HTTP servers](http_servers) |
//! | repeat something, try it again after a growing pause, or wait until events stop (debounce) | [Periodic work](periodic_work) |
//! | expire the entries of a map or cache | [Expiring maps](expiring_maps) |
//! | sleep and limit futures, or run async code at a deadline | [Async programs](async_programs) |
//! | sleep or limit a wait inside a library that you publish | [In a library](in_a_library) |
//! | test code with timeouts, also beside [a paused clock of tokio](virtual_time#on-tokio) | [Tests on virtual time](virtual_time) |
//! | set the tick, buckets, executor, limit and threads; know [how much memory it takes][memory] | [Sizing](sizing) |
//! | know what the timer does, and hear of trouble | [Monitoring](watching) |
//! | shut down, resume after a restart, and know [what a drop ends][drop] | [Shutdown and restart](shutdown) |
//! | notice what is stuck | [A watchdog](a_watchdog) |
//! | know what a suspend, a stall or a change of the system's time does | [Suspends and stalls](suspends) |
//! | know which systems were tested | [Systems](systems) |
//! | drive timeouts from your own event loop | [Your own loop](own_loop) |
//! | choose the wheel under the timer | [Choosing a wheel](choosing_a_wheel) |
//! | port code that uses Netty's `HashedWheelTimer` | [From Netty](from_netty) |
//! | port code that uses Java's `ScheduledThreadPoolExecutor` | [From a scheduled executor](from_scheduled_executor) |
//! | port code from `tokio::time`, [`DelayQueue`][queue] or [pingora-timeout][pingora] | [From tokio](from_tokio) |
//! | compare it with other timers | [How fast it is](speed) |
//! | know why it is built as it is | [Design notes](design) |
//! | run work that a crash must not lose, or that a cron schedule starts | [Jobs that survive a crash](jobs) |
//!
//! Some answers stand within a chapter:
//!
//! - know [what happens if a run takes longer than its period](periodic_work#rate-or-delay-and-missed-runs), or [the
//!   reader of an interval](crate::future::Interval)
//! - drop the handle of a timeout: it stays pending, and [runs](shutdown#what-a-drop-ends)
//! - know what happens if a task panics: it is counted and [logged](watching#the-log), and [no other task is
//!   affected](crate#guarantees); if it is periodic, it does not run again
//! - schedule, move or cancel other timeouts in a task: all these calls work there. To run again, a task
//!   [returns `Next::after`](periodic_work#a-pause-that-changes)
//! - use sleeps, limits and intervals [in `select!`](async_programs#in-a-select-loop), where futures are dropped
//! - [pause a timeout](request_deadlines#a-deadline-that-pauses), and resume it with the time that was left
//! - [add jitter to a pause](periodic_work#a-pause-that-changes), so that retries do not come together
//! - [run something at a time of day](periodic_work#at-a-time-of-day)
//! - [send a second request if the first is slow](async_programs#a-second-request-if-the-first-is-slow)
//! - share one timer between threads and runtimes: [all can use it](async_programs)
//! - know whether a cancel came in time: [`cancel` returns true to one caller only](request_deadlines). While the task
//!   runs, [the run ends first](periodic_work#what-to-know)
//! - cancel all timeouts of one user: keep a [`CancelOnDrop`](crate::CancelOnDrop) of each in a list, and drop the list
//! - [run tasks on a thread pool, a runtime or an event loop](sizing#the-executor)
//! - [name the worker's thread, or give it a priority](sizing#the-threads)
//! - [find out why timeouts are late](watching#if-timeouts-are-late)
//! - [end a server, its jobs and the timer](shutdown#with-a-server-and-jobs)
//!
//! The [crate's page](crate) lists the guarantees and the limits. The chapters are modules of text alone: there is
//! nothing to import.
//!
//! [memory]: sizing#memory
//! [drop]: shutdown#what-a-drop-ends
//! [queue]: from_tokio#from-tokio-util
//! [pingora]: from_tokio#from-pingora-timeout

/// Makes a module of each chapter, whose page ends with links to the chapters beside it. The text is in the file of the
/// chapter's name, in this folder or in the one that is named. Attributes of a chapter come after its text.
///
/// `.ci/names` compares this order and these titles with the table above and with the files.
macro_rules! chapters {
    (@ [$($previous:tt)*]) => {};
    (@ [$($previous:ident $previous_title:literal)?]
        $(#[$after:meta])* $name:ident: $title:literal $(in $folder:literal)?; $($rest:tt)*) => {
        #[doc = include_str!(concat!($($folder,)? stringify!($name), ".md"))]
        $(#[$after])*
        #[doc = concat!(
            "\n\n---\n\n",
            $("Previous: [", $previous_title, "](crate::guide::", stringify!($previous), ") · ",)?
            "[The guide](crate::guide)", next!($($rest)*),
        )]
        pub mod $name {}

        chapters!(@ [$name $title] $($rest)*);
    };
    ($($chapters:tt)*) => { chapters!(@ [] $($chapters)*); };
}

macro_rules! next {
    () => {
        ""
    };
    ($(#[$after:meta])* $name:ident: $title:literal $($rest:tt)*) => {
        concat!(" · Next: [", $title, "](crate::guide::", stringify!($name), ")")
    };
}

chapters! {
    request_deadlines: "Request deadlines";
    idle_connections: "Idle connections";
    websocket_pings: "WebSocket pings";
    http_servers: "HTTP servers";
    periodic_work: "Periodic work";
    expiring_maps: "Expiring maps";
    async_programs: "Async programs";
    in_a_library: "In a library";
    virtual_time: "Tests on virtual time";
    sizing: "Sizing";
    watching: "Monitoring";
    shutdown: "Shutdown and restart";
    a_watchdog: "A watchdog";
    suspends: "Suspends and stalls";
    systems: "Systems" in "../../docs/";
    own_loop: "Your own loop";
    #[doc = "\n\n<div style=\"overflow-x:auto\">"]
    #[doc = include_str!("../../docs/wheel-hashed.svg")]
    #[doc = include_str!("../../docs/wheel-hierarchical.svg")]
    #[doc = include_str!("../../docs/wheel-linux-classic.svg")]
    #[doc = include_str!("../../docs/wheel-linux.svg")]
    #[doc = include_str!("../../docs/wheel-simple.svg")]
    #[doc = "</div>"]
    choosing_a_wheel: "Choosing a wheel";
    from_netty: "From Netty";
    from_scheduled_executor: "From a scheduled executor";
    from_tokio: "From tokio";
    speed: "How fast it is" in "../../docs/";
    design: "Design notes" in "../../docs/";
    jobs: "Jobs that survive a crash";
}
