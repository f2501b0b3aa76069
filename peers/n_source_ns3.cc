// N sources that share one bottleneck in ns-3, for `peers/n_source.py`.
//
//     n_source_ns3 VARIANT SOURCES BPS DELAY_US BUFFER_PACKETS WINDOW_PACKETS SSTHRESH_PACKETS PACKET_BYTES SECONDS
//
// Each packet crosses a link of its source, the bottleneck and a link of its destination. All links have the same rate
// and delay. VARIANT is newreno or sack. The program writes the number of delivered packets to the standard output.

#include "ns3/boolean.h"
#include "ns3/bulk-send-helper.h"
#include "ns3/config.h"
#include "ns3/data-rate.h"
#include "ns3/inet-socket-address.h"
#include "ns3/internet-stack-helper.h"
#include "ns3/ipv4-address-helper.h"
#include "ns3/ipv4-global-routing-helper.h"
#include "ns3/node-container.h"
#include "ns3/nstime.h"
#include "ns3/packet-sink-helper.h"
#include "ns3/packet-sink.h"
#include "ns3/point-to-point-helper.h"
#include "ns3/queue-size.h"
#include "ns3/simulator.h"
#include "ns3/string.h"
#include "ns3/tcp-congestion-ops.h"
#include "ns3/tcp-recovery-ops.h"
#include "ns3/tcp-socket-factory.h"
#include "ns3/traffic-control-helper.h"
#include "ns3/uinteger.h"

#include <cstdlib>
#include <iostream>
#include <string>

using namespace ns3;

namespace
{

constexpr uint16_t SERVER_PORT = 80;
/// Bytes of the headers of a packet: PPP, IP and TCP without options.
constexpr uint32_t HEADERS = 2 + 40;

void
SetDefaults(bool sack, uint32_t segment, uint32_t window, uint32_t ssthresh)
{
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpNewReno::GetTypeId()));
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType", TypeIdValue(TcpClassicRecovery::GetTypeId()));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(segment));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(segment * window));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(segment * window));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocket::InitialSlowStartThreshold", UintegerValue(segment * ssthresh));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));
    Config::SetDefault("ns3::TcpSocketBase::ClockGranularity", TimeValue(MilliSeconds(100)));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(sack));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::LimitedTransmit", BooleanValue(false));
}

} // namespace

int
main(int argc, char** argv)
{
    if (argc != 10)
    {
        std::cerr << "n_source_ns3 needs 9 arguments" << std::endl;
        return 2;
    }
    const uint32_t sources = std::atoi(argv[2]);
    const uint32_t segment = std::atoi(argv[8]) - HEADERS;
    SetDefaults(std::string(argv[1]) == "sack", segment, std::atoi(argv[6]), std::atoi(argv[7]));

    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(std::strtoull(argv[3], nullptr, 10))));
    link.SetChannelAttribute("Delay", TimeValue(MicroSeconds(std::atoi(argv[4]))));
    const auto setQueue = [&](const std::string& packets) {
        link.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue(packets + "p"));
    };
    NodeContainer switches(2);
    NodeContainer senders(sources);
    NodeContainer receivers(sources);
    InternetStackHelper stack;
    stack.SetIpv6StackInstall(false);
    stack.InstallAll();
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.252");
    const auto connect = [&](Ptr<Node> one, Ptr<Node> other) {
        const auto devices = link.Install(one, other);
        const auto interfaces = addresses.Assign(devices);
        addresses.NewNetwork();
        // An address comes with a queue discipline. Only the queue of the link should hold packets.
        TrafficControlHelper().Uninstall(devices);
        return interfaces.GetAddress(1);
    };
    setQueue(argv[5]);
    connect(switches.Get(0), switches.Get(1));
    setQueue("1000000");
    ApplicationContainer sinks;
    for (uint32_t i = 0; i < sources; ++i)
    {
        connect(senders.Get(i), switches.Get(0));
        const InetSocketAddress end(connect(switches.Get(1), receivers.Get(i)), SERVER_PORT);
        sinks.Add(PacketSinkHelper("ns3::TcpSocketFactory", end).Install(receivers.Get(i)));
        BulkSendHelper("ns3::TcpSocketFactory", end).Install(senders.Get(i));
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();
    Simulator::Stop(Seconds(std::atof(argv[9])));
    Simulator::Run();
    uint64_t delivered = 0;
    for (auto sink = sinks.Begin(); sink != sinks.End(); ++sink)
    {
        delivered += DynamicCast<PacketSink>(*sink)->GetTotalRx() / segment;
    }
    std::cout << delivered << std::endl;
    Simulator::Destroy();
    return 0;
}
