// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The tables and their columns. `Documentation/guide/fleet-sql.md` has the same columns, which a test compares.
//!
//! Every column may be null. The name of a time or a duration ends with its unit: `_ns` is a time of the trace's clock
//! or a duration, in ns; `_utc` is a time of day, in us, because readers such as Spark refuse ns.

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// A signed integer of 64 bits.
    Int,
    /// UTF-8.
    Text,
    /// True or false.
    Flag,
    /// Time of day, us since 1970.
    Time,
}

/// A column.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// The type of its values.
    pub of: Type,
}

/// A value of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cell {
    /// An integer.
    Int(Option<i64>),
    /// A text.
    Text(Option<String>),
    /// True or false.
    Flag(Option<bool>),
    /// Time of day, us since 1970.
    Time(Option<i64>),
}

/// A row of a table.
pub trait Row: Sized {
    /// Name of the table, and of its directory.
    const TABLE: &'static str;
    /// The columns.
    const COLUMNS: &'static [Column];

    /// The values, in the order of the columns.
    fn cells(self) -> impl Iterator<Item = Cell>;
}

type Int = Option<i64>;
type Text = Option<String>;
type Flag = Option<bool>;
type Time = Option<i64>;

macro_rules! tables {
    ($($(#[$doc:meta])* $row:ident $name:literal { $($(#[$about:meta])* $field:ident: $of:ident,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Default, PartialEq, Eq)]
            pub struct $row {
                $($(#[$about])* pub $field: $of,)*
            }

            impl Row for $row {
                const TABLE: &'static str = $name;
                const COLUMNS: &'static [Column] = &[
                    $(Column { name: stringify!($field), of: Type::$of },)*
                ];

                fn cells(self) -> impl Iterator<Item = Cell> {
                    [$(Cell::$of(self.$field),)*].into_iter()
                }
            }
        )*

        /// The name and the columns of each table.
        pub const TABLES: &[(&str, &[Column])] = &[$(($name, $row::COLUMNS),)*];
    };
}

tables! {
    /// A duration that an analysis found.
    Interval "intervals" {
        /// The trace, as in the names of files.
        trace: Text,
        /// The analysis.
        analysis: Text,
        /// The kind of operation, as in the JSON of the analysis; for `delays`: `stay`.
        kind: Text,
        /// Time of day of the start.
        start_utc: Time,
        /// Time of day of the end.
        end_utc: Time,
        /// Start.
        start_ns: Int,
        /// End.
        end_ns: Int,
        /// Duration.
        duration_ns: Int,
        /// CPU at the end; for `preempted`, the CPU that the thread left; for `sleep`, the waker's CPU.
        cpu: Int,
        /// Thread.
        tid: Int,
        /// Name of the thread: at the end of the operation; for `delays`, at the end of the range.
        comm: Text,
        /// Priority of the thread, as the kernel counts it.
        prio: Int,
        /// Number of the interrupt line.
        line: Int,
        /// Number of the softirq.
        vector: Int,
        /// Name of the interrupt's handler, of the softirq or of the function; for `delays`, the name in the cause.
        name: Text,
        /// System call; for a sleep, with `--by call`, the call in which the thread slept.
        call: Text,
        /// Disk, by number, or network device, by name.
        device: Text,
        /// Disk, by name, if the trace records it.
        disk: Text,
        /// Operation of the disk request or of the futex call.
        operation: Text,
        /// Kind of lock.
        lock_kind: Text,
        /// Address of the lock, if recorded.
        lock: Text,
        /// Class of the state.
        class: Text,
        /// Cause of the state.
        cause: Text,
        /// What the cause names.
        cause_by: Text,
        /// How the cause is known.
        cause_known: Text,
        /// Thread that ended the wait.
        woken_by_tid: Int,
        /// Its name.
        woken_by_comm: Text,
        /// Whether the state had not ended when the trace ended.
        open: Flag,
        /// Requested thread; `tid` may be an ancestor that stands in for it.
        analyzed_tid: Int,
        /// Kind of sleep: `S`, `D`, `I`, `T`, `t`, `other`.
        state: Text,
        /// Kind of what ended the sleep.
        waker: Text,
        /// Address of the function of the work item.
        function: Text,
        /// Workqueue of the work item, if recorded.
        workqueue: Text,
        /// Kind of reclaim: `direct`, `memcg`, `compaction`, `kswapd`.
        reclaim: Text,
        /// File of the system call; null if not certain, or if the call works on no file, or on several.
        file: Text,
        /// End of the received packet: `copied`, `consumed`, `dropped`.
        ended: Text,
        /// Kind of what queued the work item.
        queuer: Text,
        /// Thread that queued it.
        queued_by_tid: Int,
        /// Name of the thread, interrupt, softirq or disk that queued it, or of the function of another work item.
        queued_by_name: Text,
        /// Descriptor of the system call of a stay, if its file is not known.
        descriptor: Int,
    }

    /// A step of a critical path, or a wait of a chain.
    Edge "edges" {
        /// The trace, as in the names of files.
        trace: Text,
        /// The analysis.
        analysis: Text,
        /// Thread that was analyzed.
        target_tid: Int,
        /// Its name.
        target_comm: Text,
        /// Start of the range.
        range_start_ns: Int,
        /// End of the range.
        range_end_ns: Int,
        /// Number of the edge in its chain, from 0.
        step: Int,
        /// Number of threads that wait for this one, each for the next: 0 for the analyzed one.
        depth: Int,
        /// `step` for a step of a path; otherwise the kind of wait.
        kind: Text,
        /// Time of day of the start.
        start_utc: Time,
        /// Time of day of the end.
        end_utc: Time,
        /// Start.
        start_ns: Int,
        /// End.
        end_ns: Int,
        /// Duration.
        duration_ns: Int,
        /// Thread.
        tid: Int,
        /// Name of the thread at the end of the range.
        comm: Text,
        /// CPU.
        cpu: Int,
        /// Kind of cause.
        cause: Text,
        /// What the cause names.
        cause_by: Text,
        /// How the cause is known.
        cause_known: Text,
        /// Why the state is not recorded.
        cause_why: Text,
        /// Name in the cause: of a device, an interrupt, a softirq, a cgroup.
        cause_name: Text,
        /// A possible cause, not proved.
        cause_perhaps: Text,
        /// System call in which the thread waited or ran.
        call: Text,
        /// Disk, by name, if the trace records it.
        disk: Text,
        /// Thread that ended the wait.
        woken_by_tid: Int,
        /// Its name.
        woken_by_comm: Text,
        /// The longest activity of the CPU while the thread waited for it.
        instead: Text,
        /// Thread that had the CPU instead.
        instead_tid: Int,
        /// Its name.
        instead_comm: Text,
        /// Length of that activity.
        instead_ns: Int,
        /// Requested thread; `target_tid` may be an ancestor that stands in for it.
        analyzed_tid: Int,
        /// Where a request was that the disk had not received.
        held: Text,
        /// Instance of the alert that the path explains; only for `explain`.
        instance: Text,
        /// Number of this alert in the instance.
        seq: Int,
        /// File of the system call; null if not certain, or if the call works on no file, or on several.
        file: Text,
        /// Descriptor of the system call, if its file is not known.
        descriptor: Int,
    }

    /// An alert.
    Alert "alerts" {
        /// The trace, as in the names of files.
        trace: Text,
        /// Number in the instance.
        seq: Int,
        /// Instance.
        instance: Text,
        /// Tracker.
        tracker: Text,
        /// Why it was raised.
        reason: Text,
        /// Time of day.
        time_utc: Time,
        /// CLOCK_MONOTONIC.
        time_ns: Int,
        /// Delay.
        delay_ns: Int,
        /// Threshold.
        threshold_ns: Int,
        /// CPU.
        cpu: Int,
        /// Process.
        pid: Int,
        /// Thread.
        tid: Int,
        /// Name of the thread.
        comm: Text,
        /// Fields of the tracker, as a JSON object.
        fields: Text,
    }

    /// A time in which a CPU was not recorded.
    Gap "gaps" {
        /// The trace, as in the names of files.
        trace: Text,
        /// The analysis.
        analysis: Text,
        /// CPU.
        cpu: Int,
        /// Time of day of the start.
        start_utc: Time,
        /// Time of day of the end.
        end_utc: Time,
        /// Start, within the range of the analysis.
        start_ns: Int,
        /// End, within the range of the analysis.
        end_ns: Int,
        /// `lost`, `between-traces`, `starts-later`, `ends-earlier`, `no-stream`.
        why: Text,
        /// The only thread that was analyzed, if there was only one.
        tid: Int,
    }

    /// What an analysis of a trace covers: one row for each kind of operation.
    Coverage "coverage" {
        /// The trace, as in the names of files.
        trace: Text,
        /// The analysis.
        analysis: Text,
        /// Kind of operation; for `path` and `explain`, `edge`; for `delays`, `edge` and `stay`.
        kind: Text,
        /// Time of day of the start.
        start_utc: Time,
        /// Time of day of the end.
        end_utc: Time,
        /// Start of the range in the trace.
        start_ns: Int,
        /// End of the range in the trace.
        end_ns: Int,
        /// What to add to a time of the trace's clock to get the time since 1970.
        utc_offset_ns: Int,
        /// The boot of the host, or the clock.
        boot: Text,
        /// Release of the kernel.
        kernel: Text,
        /// The only thread that was analyzed, if there was only one.
        tid: Int,
        /// Number of rows of this kind.
        measured: Int,
        /// Sum of their durations.
        sum_ns: Int,
        /// Operations that were not measured, because events were lost.
        not_measured_lost: Int,
        /// Operations that were not measured, because their start or end is outside.
        not_measured_outside: Int,
        /// Operations that were not measured, because identical ones were in flight.
        not_measured_identical: Int,
        /// Events that the tracer lost.
        events_lost: Int,
        /// Packets that are missing.
        packets_lost: Int,
        /// What is missing from the trace, as sentences, one per line.
        caveats: Text,
        /// Version of latency-tracker.
        version: Text,
    }
}
