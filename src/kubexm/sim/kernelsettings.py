"""Settings that a kernel of Debian has, by their names and with what it sets them to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

_ALONE: Mapping[str, str] = {
    "fs": """
        aio-max-nr=65536 file-max=9223372036854775807 lease-break-time=45 leases-enable=1
        mount-max=100000 nr_open=1048576 overflowgid=65534 overflowuid=65534
        pipe-max-size=1048576 pipe-user-pages-hard=0 pipe-user-pages-soft=16384
        protected_fifos=1 protected_hardlinks=1 protected_regular=2 protected_symlinks=1
        suid_dumpable=0
    """,
    "fs.inotify": """
        max_queued_events=16384 max_user_instances=128 max_user_watches=65536
    """,
    "fs.epoll": """
        max_user_watches=449000
    """,
    "fs.mqueue": """
        msg_default=10 msg_max=10 msgsize_default=8192 msgsize_max=8192 queues_max=256
    """,
    "fs.fanotify": """
        max_queued_events=16384 max_user_groups=128 max_user_marks=16384
    """,
    "kernel": """
        bpf_stats_enabled=0 core_pattern=core core_pipe_limit=0 core_uses_pid=0
        ctrl-alt-del=0 dmesg_restrict=1 hardlockup_all_cpu_backtrace=0 hardlockup_panic=0
        hung_task_all_cpu_backtrace=0 hung_task_check_count=4194304 hung_task_panic=0
        hung_task_timeout_secs=120 hung_task_warnings=10 io_uring_disabled=0
        io_uring_group=-1 kexec_load_disabled=0 kptr_restrict=0 modules_disabled=0
        msgmax=8192 msgmnb=16384 msgmni=32000 nmi_watchdog=0 numa_balancing=0
        oops_all_cpu_backtrace=0 oops_limit=10000 overflowgid=65534 overflowuid=65534
        panic=0 panic_on_oops=0 panic_on_rcu_stall=0 panic_on_unrecovered_nmi=0
        panic_on_warn=0 panic_print=0 perf_cpu_time_max_percent=25
        perf_event_max_contexts_per_stack=8 perf_event_max_sample_rate=100000
        perf_event_max_stack=127 perf_event_mlock_kb=516 perf_event_paranoid=3
        pid_max=4194304 print-fatal-signals=0 printk=4,4,1,7 printk_delay=0
        printk_devkmsg=ratelimit printk_ratelimit=5 printk_ratelimit_burst=10
        randomize_va_space=2 sched_autogroup_enabled=1 sched_cfs_bandwidth_slice_us=5000
        sched_deadline_period_max_us=4194304 sched_deadline_period_min_us=100
        sched_rr_timeslice_ms=100 sched_rt_period_us=1000000 sched_rt_runtime_us=950000
        sem=32000,1024000000,500,32000 shm_rmid_forced=0 shmall=18446744073692774399
        shmmax=18446744073692774399 shmmni=4096 soft_watchdog=1
        softlockup_all_cpu_backtrace=0 softlockup_panic=0 split_lock_mitigate=1 sysrq=438
        task_delayacct=0 threads-max=15000 timer_migration=1 tracepoint_printk=0
        unknown_nmi_panic=0 unprivileged_bpf_disabled=2 unprivileged_userns_clone=1
        warn_limit=0 watchdog=1 watchdog_thresh=10 yama.ptrace_scope=0
    """,
    "kernel.keys": """
        gc_delay=300 maxbytes=20000 maxkeys=200 persistent_keyring_expiry=259200
        root_maxbytes=25000000 root_maxkeys=1000000
    """,
    "kernel.pty": """
        max=4096 reserve=1024
    """,
    "net.core": """
        bpf_jit_enable=1 bpf_jit_harden=0 bpf_jit_kallsyms=1 bpf_jit_limit=528482304
        busy_poll=0 busy_read=0 default_qdisc=pfifo_fast dev_weight=64 dev_weight_rx_bias=1
        dev_weight_tx_bias=1 devconf_inherit_init_net=0 fb_tunnels_only_for_init_net=0
        flow_limit_table_len=4096 gro_normal_batch=8 max_skb_frags=17 message_burst=10
        message_cost=5 netdev_budget=300 netdev_budget_usecs=8000 netdev_max_backlog=1000
        netdev_tstamp_prequeue=1 netdev_unregister_timeout_secs=10 optmem_max=131072
        rmem_default=212992 rmem_max=212992 rps_sock_flow_entries=0 skb_defer_max=64
        somaxconn=4096 warnings=0 wmem_default=212992 wmem_max=212992 xfrm_acq_expires=30
        xfrm_aevent_etime=10 xfrm_aevent_rseqth=2 xfrm_larval_drop=1
    """,
    "net.unix": """
        max_dgram_qlen=10
    """,
    "net.ipv4": """
        fib_multipath_hash_fields=7 fib_multipath_hash_policy=0 fib_multipath_use_neigh=0
        fib_notify_on_flag_change=0 fib_sync_mem=524288 fwmark_reflect=0
        icmp_echo_enable_probe=0 icmp_echo_ignore_all=0 icmp_echo_ignore_broadcasts=1
        icmp_errors_use_inbound_ifaddr=0 icmp_ignore_bogus_error_responses=1
        icmp_msgs_burst=50 icmp_msgs_per_sec=1000 icmp_ratelimit=1000 icmp_ratemask=6168
        igmp_link_local_mcast_reports=1 igmp_max_memberships=20 igmp_max_msf=10 igmp_qrv=2
        inet_peer_maxttl=600 inet_peer_minttl=120 inet_peer_threshold=65664
        ip_autobind_reuse=0 ip_default_ttl=64 ip_dynaddr=0 ip_early_demux=1 ip_forward=0
        ip_forward_update_priority=1 ip_forward_use_pmtu=0 ip_local_port_range=32768,60999
        ip_local_reserved_ports= ip_no_pmtu_disc=0 ip_nonlocal_bind=0
        ip_unprivileged_port_start=1024 ipfrag_high_thresh=4194304 ipfrag_low_thresh=3145728
        ipfrag_max_dist=64 ipfrag_secret_interval=0 ipfrag_time=30 nexthop_compat_mode=1
        ping_group_range=1,0 raw_l3mdev_accept=1 tcp_abort_on_overflow=0 tcp_adv_win_scale=1
        tcp_allowed_congestion_control=reno,cubic tcp_app_win=31 tcp_autocorking=1
        tcp_base_mss=1024 tcp_challenge_ack_limit=2147483647 tcp_child_ehash_entries=0
        tcp_comp_sack_delay_ns=1000000 tcp_comp_sack_nr=44 tcp_comp_sack_slack_ns=100000
        tcp_congestion_control=cubic tcp_dsack=1 tcp_early_demux=1 tcp_early_retrans=3
        tcp_ecn=2 tcp_ecn_fallback=1 tcp_fack=0 tcp_fastopen=1
        tcp_fastopen_blackhole_timeout_sec=0 tcp_fin_timeout=60 tcp_frto=2
        tcp_fwmark_accept=0 tcp_invalid_ratelimit=500 tcp_keepalive_intvl=75
        tcp_keepalive_probes=9 tcp_keepalive_time=7200 tcp_l3mdev_accept=0
        tcp_limit_output_bytes=4194304 tcp_low_latency=0 tcp_max_orphans=8192
        tcp_max_reordering=300 tcp_max_syn_backlog=256 tcp_max_tw_buckets=8192
        tcp_mem=22000,30000,44000 tcp_migrate_req=0 tcp_min_rtt_wlen=300 tcp_min_snd_mss=48
        tcp_min_tso_segs=2 tcp_moderate_rcvbuf=1 tcp_mtu_probe_floor=48 tcp_mtu_probing=0
        tcp_no_metrics_save=0 tcp_no_ssthresh_metrics_save=1 tcp_notsent_lowat=4294967295
        tcp_orphan_retries=0 tcp_pacing_ca_ratio=120 tcp_pacing_ss_ratio=200
        tcp_plb_cong_thresh=128 tcp_plb_enabled=0 tcp_plb_idle_rehash_rounds=3
        tcp_plb_rehash_rounds=12 tcp_plb_suspend_rto_sec=60 tcp_probe_interval=600
        tcp_probe_threshold=8 tcp_recovery=1 tcp_reflect_tos=0 tcp_reordering=3
        tcp_retrans_collapse=1 tcp_retries1=3 tcp_retries2=15 tcp_rfc1337=0
        tcp_rmem=4096,131072,6291456 tcp_sack=1 tcp_slow_start_after_idle=1 tcp_stdurg=0
        tcp_syn_retries=6 tcp_synack_retries=5 tcp_syncookies=1 tcp_thin_linear_timeouts=0
        tcp_timestamps=1 tcp_tso_win_divisor=3 tcp_tw_reuse=2 tcp_window_scaling=1
        tcp_wmem=4096,16384,4194304 tcp_workaround_signed_windows=0 udp_child_hash_entries=0
        udp_early_demux=1 udp_l3mdev_accept=0 udp_mem=45000,60000,90000 udp_rmem_min=4096
        udp_wmem_min=4096
    """,
    "net.ipv4.route": """
        error_burst=1250 error_cost=250 gc_elasticity=8 gc_interval=60 gc_min_interval=0
        gc_min_interval_ms=500 gc_thresh=-1 gc_timeout=300 max_size=2147483647
        min_adv_mss=256 min_pmtu=552 mtu_expires=600 redirect_load=5 redirect_number=9
        redirect_silence=5120
    """,
    "net.ipv4.neigh.default": """
        anycast_delay=100 app_solicit=0 base_reachable_time=30 base_reachable_time_ms=30000
        delay_first_probe_time=5 gc_interval=30 gc_stale_time=60 gc_thresh1=128
        gc_thresh2=512 gc_thresh3=1024 interval_probe_time_ms=5000 locktime=100
        mcast_resolicit=0 mcast_solicit=3 proxy_delay=80 proxy_qlen=64 retrans_time=100
        retrans_time_ms=1000 ucast_solicit=3 unres_qlen=101 unres_qlen_bytes=212992
    """,
    "net.ipv6": """
        anycast_src_echo_reply=0 auto_flowlabels=1 bindv6only=0 fib_multipath_hash_fields=7
        fib_multipath_hash_policy=0 fib_notify_on_flag_change=0 flowlabel_consistency=1
        flowlabel_reflect=0 fwmark_reflect=0 idgen_delay=1 idgen_retries=3
        ip6frag_high_thresh=4194304 ip6frag_low_thresh=3145728 ip6frag_secret_interval=0
        ip6frag_time=60 ip_nonlocal_bind=0 max_dst_opts_length=2147483647
        max_dst_opts_number=8 max_hbh_length=2147483647 max_hbh_opts_number=8 mld_max_msf=64
        mld_qrv=2 seg6_flowlabel=0
    """,
    "net.ipv6.icmp": """
        echo_ignore_all=0 echo_ignore_anycast=0 echo_ignore_multicast=0
        error_anycast_as_unicast=0 ratelimit=100 ratemask=0-1,3-127
    """,
    "net.ipv6.route": """
        gc_elasticity=9 gc_interval=30 gc_min_interval=0 gc_min_interval_ms=500
        gc_thresh=1024 gc_timeout=60 max_size=2147483647 min_adv_mss=1220 mtu_expires=600
        skip_notify_on_dev_down=0
    """,
    "net.ipv6.neigh.default": """
        anycast_delay=100 app_solicit=0 base_reachable_time=30 base_reachable_time_ms=30000
        delay_first_probe_time=5 gc_interval=30 gc_stale_time=60 gc_thresh1=128
        gc_thresh2=512 gc_thresh3=1024 interval_probe_time_ms=5000 locktime=0
        mcast_resolicit=0 mcast_solicit=3 proxy_delay=80 proxy_qlen=64 retrans_time=250
        retrans_time_ms=1000 ucast_solicit=3 unres_qlen=101 unres_qlen_bytes=212992
    """,
    "user": """
        max_cgroup_namespaces=15000 max_inotify_instances=128 max_inotify_watches=65536
        max_ipc_namespaces=15000 max_mnt_namespaces=15000 max_net_namespaces=15000
        max_pid_namespaces=15000 max_user_namespaces=15000 max_uts_namespaces=15000
    """,
    "vm": """
        admin_reserve_kbytes=8192 compact_unevictable_allowed=1 compaction_proactiveness=20
        dirty_background_bytes=0 dirty_background_ratio=10 dirty_bytes=0
        dirty_expire_centisecs=3000 dirty_ratio=20 dirty_writeback_centisecs=500
        dirtytime_expire_seconds=43200 extfrag_threshold=500 hugetlb_shm_group=0
        laptop_mode=0 legacy_va_layout=0 lowmem_reserve_ratio=256,256,32,0,0
        max_map_count=65530 memfd_noexec=0 min_free_kbytes=45056 min_slab_ratio=5
        min_unmapped_ratio=1 mmap_min_addr=65536 mmap_rnd_bits=28 mmap_rnd_compat_bits=8
        nr_hugepages=0 nr_hugepages_mempolicy=0 nr_overcommit_hugepages=0 numa_stat=1
        oom_dump_tasks=1 oom_kill_allocating_task=0 overcommit_kbytes=0 overcommit_memory=0
        overcommit_ratio=50 page-cluster=3 page_lock_unfairness=5 panic_on_oom=0
        percpu_pagelist_high_fraction=0 stat_interval=1 swappiness=60
        unprivileged_userfaultfd=0 user_reserve_kbytes=60000 vfs_cache_pressure=100
        watermark_boost_factor=15000 watermark_scale_factor=10 zone_reclaim_mode=0
    """,
}
"""By what their names begin with. Those that nobody sets are left out, and those that can't be set;
blanks of a value are commas."""
_OF_INTERFACES: Mapping[str, str] = {
    "net.ipv4.conf": """
        accept_local=0 accept_redirects=1 accept_source_route=1 arp_accept=0 arp_announce=0
        arp_evict_nocarrier=1 arp_filter=0 arp_ignore=0 arp_notify=0 bc_forwarding=0
        bootp_relay=0 disable_policy=0 disable_xfrm=0 drop_gratuitous_arp=0
        drop_unicast_in_l2_multicast=0 force_igmp_version=0 forwarding=0
        igmpv2_unsolicited_report_interval=10000 igmpv3_unsolicited_report_interval=1000
        ignore_routes_with_linkdown=0 log_martians=0 medium_id=0 promote_secondaries=0
        proxy_arp=0 proxy_arp_pvlan=0 route_localnet=0 rp_filter=0 secure_redirects=1
        send_redirects=1 shared_media=1 src_valid_mark=0 tag=0
    """,
    "net.ipv6.conf": """
        accept_dad=1 accept_ra=1 accept_ra_defrtr=1 accept_ra_from_local=0
        accept_ra_min_hop_limit=1 accept_ra_min_lft=0 accept_ra_mtu=1 accept_ra_pinfo=1
        accept_ra_rt_info_max_plen=0 accept_ra_rt_info_min_plen=0 accept_ra_rtr_pref=1
        accept_redirects=1 accept_source_route=0 accept_untracked_na=0 addr_gen_mode=0
        autoconf=1 dad_transmits=1 disable_ipv6=0 disable_policy=0
        drop_unicast_in_l2_multicast=0 drop_unsolicited_na=0 enhanced_dad=1
        force_mld_version=0 force_tllao=0 forwarding=0 hop_limit=64
        ignore_routes_with_linkdown=0 keep_addr_on_down=0 max_addresses=16
        max_desync_factor=600 mldv1_unsolicited_report_interval=10000
        mldv2_unsolicited_report_interval=1000 mtu=1280 ndisc_evict_nocarrier=1
        ndisc_notify=0 ndisc_tclass=0 optimistic_dad=0 proxy_ndp=0 ra_defrtr_metric=1024
        regen_max_retry=3 router_probe_interval=60 router_solicitation_delay=1
        router_solicitation_interval=4 router_solicitation_max_interval=3600
        router_solicitations=-1 seg6_enabled=0 seg6_require_hmac=0 suppress_frag_ndisc=1
        temp_prefered_lft=86400 temp_valid_lft=604800 use_oif_addrs_only=0 use_optimistic=0
        use_tempaddr=0
    """,
}
"""Each interface has them, and so have all together and those to come."""
_INTERFACES = ("all", "default", "eth0", "lo")
_OF_MODULES: Mapping[str, Mapping[str, str]] = {
    "br_netfilter": {
        "net.bridge": """
            bridge-nf-call-arptables=1 bridge-nf-call-ip6tables=1
            bridge-nf-call-iptables=1 bridge-nf-filter-pppoe-tagged=0
            bridge-nf-filter-vlan-tagged=0 bridge-nf-pass-vlan-input-dev=0
        """,
    },
    "ip_vs": {
        "net.ipv4.vs": """
            am_droprate=10 amemthresh=1024 backup_only=0 cache_bypass=0
            conn_reuse_mode=1 conntrack=0 drop_entry=0 drop_packet=0
            expire_nodest_conn=0 expire_quiescent_template=0 nat_icmp_send=0 pmtu_disc=1
            run_estimation=1 schedule_icmp=0 secure_tcp=0 sloppy_sctp=0 sloppy_tcp=0
            snat_reroute=1 sync_persist_mode=0 sync_ports=1 sync_refresh_period=0
            sync_retries=0 sync_threshold=3,50 sync_version=1
        """,
    },
    "nf_conntrack": {
        "net": "nf_conntrack_max=262144",
        "net.netfilter": """
            nf_conntrack_acct=0 nf_conntrack_buckets=262144 nf_conntrack_checksum=1
            nf_conntrack_events=2 nf_conntrack_expect_max=4096
            nf_conntrack_frag6_high_thresh=4194304 nf_conntrack_frag6_low_thresh=3145728
            nf_conntrack_frag6_timeout=60 nf_conntrack_generic_timeout=600
            nf_conntrack_gre_timeout=30 nf_conntrack_gre_timeout_stream=180
            nf_conntrack_icmp_timeout=30 nf_conntrack_icmpv6_timeout=30
            nf_conntrack_log_invalid=0 nf_conntrack_max=262144
            nf_conntrack_sctp_timeout_closed=10
            nf_conntrack_sctp_timeout_cookie_echoed=3
            nf_conntrack_sctp_timeout_cookie_wait=3
            nf_conntrack_sctp_timeout_established=210
            nf_conntrack_sctp_timeout_heartbeat_sent=30
            nf_conntrack_sctp_timeout_shutdown_ack_sent=3
            nf_conntrack_sctp_timeout_shutdown_recd=3
            nf_conntrack_sctp_timeout_shutdown_sent=3 nf_conntrack_tcp_be_liberal=0
            nf_conntrack_tcp_ignore_invalid_rst=0 nf_conntrack_tcp_loose=1
            nf_conntrack_tcp_max_retrans=3 nf_conntrack_tcp_timeout_close=10
            nf_conntrack_tcp_timeout_close_wait=60
            nf_conntrack_tcp_timeout_established=432000
            nf_conntrack_tcp_timeout_fin_wait=120 nf_conntrack_tcp_timeout_last_ack=30
            nf_conntrack_tcp_timeout_max_retrans=300
            nf_conntrack_tcp_timeout_syn_recv=60 nf_conntrack_tcp_timeout_syn_sent=120
            nf_conntrack_tcp_timeout_time_wait=120
            nf_conntrack_tcp_timeout_unacknowledged=300 nf_conntrack_timestamp=0
            nf_conntrack_udp_timeout=30 nf_conntrack_udp_timeout_stream=120
        """,
    },
}


def _named(beginning: str, listed: str) -> Iterator[tuple[str, str]]:
    for one in listed.split():
        name, _, value = one.partition("=")
        yield f"{beginning}.{name}", value.replace(",", "\t")


def _all(families: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for beginning, listed in families.items()
        for name, value in _named(beginning, listed)
    }


_EACH = {
    f"{beginning}.{interface}": listed
    for beginning, listed in _OF_INTERFACES.items()
    for interface in _INTERFACES
}
SETTINGS: Mapping[str, str] = _all({**_ALONE, **_EACH})
"""What a host is delivered with."""
BROUGHT: Mapping[str, Mapping[str, str]] = {
    module: _all(families) for module, families in _OF_MODULES.items()
}
"""Settings that come with a module."""
