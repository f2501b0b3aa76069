// N sources that share one bottleneck in htsim, for `peers/n_source.py`, which compiles it with the source of htsim.
//
//     n_source_htsim SOURCES MBPS DELAY_US BUFFER_PACKETS WINDOW_PACKETS SSTHRESH_PACKETS PACKET_BYTES SECONDS
//
// Each packet crosses a link of its source, the bottleneck and a link of its destination. All links have the same rate
// and delay. The program writes the number of delivered packets to the standard output, and logs nothing.

#include "eventlist.h"
#include "pipe.h"
#include "queue.h"
#include "tcp.h"

#include <cstdlib>
#include <iostream>
#include <memory>
#include <vector>

namespace
{

/// Room for all packets of a window, on links that lose nothing.
constexpr mem_b ENDLESS = mem_b(1) << 40;
/// htsim looks for expired timers once per period.
constexpr double TIMER_PERIOD_MS = 100;

/// A port and the link behind it.
struct Hop
{
    Hop(linkspeed_bps rate, simtime_picosec delay, mem_b room, EventList& events)
        : queue(rate, room, events, nullptr),
          pipe(delay, events)
    {
    }

    void AppendTo(route_t& route)
    {
        route.push_back(&queue);
        route.push_back(&pipe);
    }

    Queue queue;
    Pipe pipe;
};

} // namespace

int
main(int argc, char** argv)
{
    if (argc != 9)
    {
        std::cerr << "n_source_htsim needs 8 arguments" << std::endl;
        return 2;
    }
    const int sources = std::atoi(argv[1]);
    const linkspeed_bps rate = speedFromMbps(std::atof(argv[2]));
    const simtime_picosec delay = timeFromUs(std::atof(argv[3]));
    const int buffer = std::atoi(argv[4]);
    const int window = std::atoi(argv[5]);
    const int ssthresh = std::atoi(argv[6]);
    const int bytes = std::atoi(argv[7]);
    Packet::set_packet_size(bytes);

    EventList events;
    events.setEndtime(timeFromSec(std::atof(argv[8])));
    TcpRtxTimerScanner timers(timeFromMs(TIMER_PERIOD_MS), events);
    Hop bottleneck(rate, delay, mem_b(buffer) * bytes, events);
    Hop back(rate, delay, ENDLESS, events);
    std::vector<std::unique_ptr<Hop>> hops;
    std::vector<std::unique_ptr<route_t>> routes;
    std::vector<std::unique_ptr<TcpSrc>> senders;
    std::vector<std::unique_ptr<TcpSink>> receivers;
    const auto route = [&](Hop& shared, PacketSink* end) -> route_t& {
        routes.push_back(std::make_unique<route_t>());
        hops.push_back(std::make_unique<Hop>(rate, delay, ENDLESS, events));
        hops.back()->AppendTo(*routes.back());
        shared.AppendTo(*routes.back());
        hops.push_back(std::make_unique<Hop>(rate, delay, ENDLESS, events));
        hops.back()->AppendTo(*routes.back());
        routes.back()->push_back(end);
        return *routes.back();
    };
    for (int i = 0; i < sources; ++i)
    {
        senders.push_back(std::make_unique<TcpSrc>(nullptr, nullptr, events));
        receivers.push_back(std::make_unique<TcpSink>());
        TcpSrc& sender = *senders.back();
        sender.set_cwnd(bytes);
        sender.set_ssthresh(ssthresh * bytes);
        sender._maxcwnd = window * bytes;
        timers.registerTcp(sender);
        route_t& there = route(bottleneck, receivers.back().get());
        sender.connect(there, route(back, &sender), *receivers.back(), 0);
    }
    while (events.doNextEvent())
    {
    }
    // htsim prints timeouts. The number stands on the last line.
    uint64_t delivered = 0;
    for (const auto& receiver : receivers)
    {
        delivered += receiver->_cumulative_ack / bytes;
    }
    std::cout << std::endl << delivered << std::endl;
    return 0;
}
