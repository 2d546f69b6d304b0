//! Apple's systems: asks the kernel to end the calling thread's sleeps sooner after their time.
//!
//! The kernel groups wake-ups. It may end a sleep late by a part of its length: by a quarter, up to 5 ms, for an
//! ordinary process of a login session, and by an eighth, up to 1 ms, for a thread of the class *user interactive*.
//! (`latency_qos_scale` and `latency_qos_ns_max` in osfmk/arm/arm_timer.c and osfmk/i386/i386_timer.c of the kernel's
//! source, xnu.) Only real-time threads wait for nobody else's wake-up, and a timer must not be one.

use libc::{pthread_set_qos_class_self_np, qos_class_t};

/// Puts the calling thread into the class with the shortest delay.
pub(super) fn shorten() {
    // SAFETY: it takes two numbers and changes the calling thread alone. The class exists on all versions of the
    // systems that the standard library supports. If the kernel refuses, the timer is less precise, but correct.
    let _ = unsafe { pthread_set_qos_class_self_np(qos_class_t::QOS_CLASS_USER_INTERACTIVE, 0) };
}
