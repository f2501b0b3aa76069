// A leaf-spine network in ns-3 that carries a given list of flows. `peers/ns3.py` compiles and runs it.
//
// Hosts have the numbers 1 to leaves * hosts, leaf by leaf. The list of flows is a CSV file with the header
// `start_s,source,destination,bytes`, in the order of the starts. Two further columns, `spine` and `ack_spine`, may name
// the spine switches (from 1) of the data and of the acknowledgements. If they are absent or 0, a hash of addresses and
// ports selects a spine switch. A flow is a TCP connection of its own that is closed after its last byte.
//
// The program writes the times of each flow into a CSV file and a summary in JSON to the standard output. It traces and
// logs nothing during the run.

#include "ns3/boolean.h"
#include "ns3/command-line.h"
#include "ns3/config.h"
#include "ns3/data-rate.h"
#include "ns3/double.h"
#include "ns3/inet-socket-address.h"
#include "ns3/internet-stack-helper.h"
#include "ns3/ipv4-l3-protocol.h"
#include "ns3/ipv4-route.h"
#include "ns3/ipv4-routing-protocol.h"
#include "ns3/ipv4-static-routing-helper.h"
#include "ns3/node-container.h"
#include "ns3/nstime.h"
#include "ns3/point-to-point-helper.h"
#include "ns3/point-to-point-net-device.h"
#include "ns3/queue-disc.h"
#include "ns3/queue-size.h"
#include "ns3/queue.h"
#include "ns3/simulator.h"
#include "ns3/socket.h"
#include "ns3/string.h"
#include "ns3/tcp-congestion-ops.h"
#include "ns3/tcp-dctcp.h"
#include "ns3/tcp-recovery-ops.h"
#include "ns3/tcp-socket-factory.h"
#include "ns3/traffic-control-helper.h"
#include "ns3/uinteger.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <string>
#include <sys/resource.h>
#include <unordered_map>
#include <vector>

using namespace ns3;

namespace
{

/// Port at which every host accepts connections.
constexpr uint16_t SERVER_PORT = 80;
/// First port of connections.
constexpr uint16_t FIRST_CLIENT_PORT = 1024;
/// Length of the longest TCP header: longer TCP packets carry data.
constexpr uint32_t LONGEST_TCP_HEADER = 60;
/// Bytes of the headers of a packet with data.
constexpr uint32_t IP_AND_TCP_HEADERS = 40;
/// Address of host i is this plus i.
constexpr uint32_t HOST_ADDRESSES = 0x0a000000;
/// Address of all interfaces of switches, 192.168.0.1, which neither send nor receive.
constexpr uint32_t SWITCH_ADDRESS = 0xc0a80001;
/// Next hop of all routes, 192.168.0.2. Links between two nodes need no address, but ns-3 refuses a route without one.
constexpr uint32_t NEXT_HOP = 0xc0a80002;

[[noreturn]] void
Fail(const std::string& message)
{
    std::cerr << "leaf_spine: " << message << std::endl;
    std::exit(2);
}

Ipv4Address
AddressOfHost(uint32_t host)
{
    return Ipv4Address(HOST_ADDRESSES + host);
}

/// Returns the number of one of several paths of equal cost.
uint32_t
SelectPath(uint32_t source, uint32_t destination, uint16_t sourcePort, uint16_t destinationPort, uint32_t paths)
{
    // The finalizer of SplitMix64 mixes the bits.
    const uint64_t ports = uint64_t(sourcePort) << 16 | destinationPort;
    uint64_t x = (uint64_t(source) << 32 | destination) ^ (ports * 0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    x ^= x >> 31;
    return x % paths;
}

/// Routing of a host or switch: at most one interface for each destination, and several of equal cost for all others.
class EcmpRouting : public Ipv4RoutingProtocol
{
  public:
    explicit EcmpRouting(uint32_t hosts)
        : m_routes(hosts + 1)
    {
    }

    /// Reaches this host through this interface.
    void AddRoute(uint32_t host, uint32_t interface)
    {
        m_routes[host] = MakeRoute(interface);
    }

    /// Reaches hosts without a route of their own through one of these interfaces.
    void AddDefaultRoute(uint32_t interface)
    {
        m_defaultRoutes.push_back(MakeRoute(interface));
    }

    /// Delivers packets to this host.
    void SetLocalHost(uint32_t host)
    {
        m_local = AddressOfHost(host);
    }

    /// Returns the number of packets with data that were delivered here.
    uint64_t GetDataPackets() const
    {
        return m_dataPackets;
    }

    Ptr<Ipv4Route> RouteOutput(Ptr<Packet>,
                               const Ipv4Header&,
                               Ptr<NetDevice>,
                               Socket::SocketErrno& error) override
    {
        error = Socket::ERROR_NOTERROR;
        return m_defaultRoutes.front();
    }

    bool RouteInput(Ptr<const Packet> packet,
                    const Ipv4Header& header,
                    Ptr<const NetDevice> device,
                    UnicastForwardCallback forward,
                    MulticastForwardCallback,
                    LocalDeliverCallback deliver,
                    ErrorCallback) override
    {
        const Ipv4Address destination = header.GetDestination();
        if (destination == m_local)
        {
            m_dataPackets += packet->GetSize() > LONGEST_TCP_HEADER;
            deliver(packet, header, m_ipv4->GetInterfaceForDevice(device));
            return true;
        }
        Ptr<Ipv4Route> route = m_routes[destination.Get() - HOST_ADDRESSES];
        if (!route)
        {
            std::array<uint8_t, 4> ports;
            packet->CopyData(ports.data(), ports.size());
            route = m_defaultRoutes[SelectPath(header.GetSource().Get(),
                                               destination.Get(),
                                               ports[0] << 8 | ports[1],
                                               ports[2] << 8 | ports[3],
                                               m_defaultRoutes.size())];
        }
        forward(route, packet, header);
        return true;
    }

    void SetIpv4(Ptr<Ipv4> ipv4) override
    {
        m_ipv4 = ipv4;
    }

    void NotifyInterfaceUp(uint32_t) override
    {
    }

    void NotifyInterfaceDown(uint32_t) override
    {
    }

    void NotifyAddAddress(uint32_t, Ipv4InterfaceAddress) override
    {
    }

    void NotifyRemoveAddress(uint32_t, Ipv4InterfaceAddress) override
    {
    }

    void PrintRoutingTable(Ptr<OutputStreamWrapper>, Time::Unit) const override
    {
    }

  protected:
    void DoDispose() override
    {
        m_routes.clear();
        m_defaultRoutes.clear();
        m_ipv4 = nullptr;
        Ipv4RoutingProtocol::DoDispose();
    }

  private:
    Ptr<Ipv4Route> MakeRoute(uint32_t interface) const
    {
        auto route = Create<Ipv4Route>();
        route->SetSource(m_local);
        route->SetGateway(Ipv4Address(NEXT_HOP));
        route->SetOutputDevice(m_ipv4->GetNetDevice(interface));
        return route;
    }

    Ptr<Ipv4> m_ipv4;
    Ipv4Address m_local{Ipv4Address::GetAny()};
    /// Routes by host.
    std::vector<Ptr<Ipv4Route>> m_routes;
    std::vector<Ptr<Ipv4Route>> m_defaultRoutes;
    uint64_t m_dataPackets{0};
};

/// A flow, as listed and as observed.
struct Flow
{
    std::string startText;
    Time start;
    uint32_t source;
    uint32_t destination;
    uint64_t bytes;
    /// Spines of data and acknowledgements, from 1; 0: any.
    uint32_t spine;
    uint32_t ackSpine;

    uint64_t unsent;
    uint64_t received;
    /// End of the handshake at the sender, arrival of the last byte, and of its acknowledgement; negative before.
    Time connected;
    Time completed;
    Time acknowledged;
};

/// Settings of the command line.
struct Settings
{
    std::string flows;
    std::string completions;
    std::string tcp{"dctcp"};
    uint32_t leaves{2};
    uint32_t hosts{16};
    uint32_t spines{4};
    std::string hostRate{"10Gbps"};
    std::string uplinkRate{"40Gbps"};
    Time hostDelay{MicroSeconds(16)};
    Time uplinkDelay{MicroSeconds(16)};
    uint32_t segment{1452};
    uint32_t window{4000000};
    uint32_t initialWindow{10};
    Time minimumRto{MilliSeconds(10)};
    Time initialRto{Seconds(1)};
    Time timerGranularity{MilliSeconds(1)};
    uint32_t buffer{1000};
    uint32_t mark{65};
    Time duration{MilliSeconds(1)};
};

std::vector<Flow>
ReadFlows(const Settings& settings)
{
    std::ifstream file(settings.flows);
    std::string line;
    if (!std::getline(file, line))
    {
        Fail("cannot read " + settings.flows);
    }
    const std::string columns = "start_s,source,destination,bytes";
    if (line != columns && line != columns + ",spine" && line != columns + ",spine,ack_spine")
    {
        Fail("the first line of the flows must be " + columns + "[,spine[,ack_spine]]: " + line);
    }
    std::vector<Flow> flows;
    while (std::getline(file, line))
    {
        std::istringstream row(line);
        std::array<std::string, 6> cells;
        for (auto& cell : cells)
        {
            std::getline(row, cell, ',');
        }
        const auto number = [&](std::size_t i) { return std::strtoull(cells[i].c_str(), nullptr, 10); };
        Flow flow{};
        flow.startText = cells[0];
        flow.start = Time(cells[0] + "s");
        flow.source = number(1);
        flow.destination = number(2);
        flow.bytes = number(3);
        flow.spine = number(4);
        flow.ackSpine = number(5);
        flow.connected = flow.completed = flow.acknowledged = Seconds(-1);
        const uint32_t hosts = settings.leaves * settings.hosts;
        const auto isHost = [&](uint32_t host) { return host >= 1 && host <= hosts; };
        if (!isHost(flow.source) || !isHost(flow.destination) || flow.source == flow.destination || flow.bytes == 0 ||
            flow.spine > settings.spines || flow.ackSpine > settings.spines ||
            (!flows.empty() && flow.start < flows.back().start))
        {
            Fail("impossible flow, or not in the order of the starts: " + line);
        }
        flows.push_back(flow);
    }
    return flows;
}

/// The network, and the ends of its flows.
class Network
{
  public:
    Network(const Settings& settings, std::vector<Flow>& flows)
        : m_settings(settings),
          m_flows(flows),
          m_nextPort(settings.leaves * settings.hosts + 1, FIRST_CLIENT_PORT)
    {
        SetDefaults();
        Build();
        if (!m_flows.empty())
        {
            Simulator::Schedule(m_flows.front().start, &Network::StartFlow, this, std::size_t(0));
        }
    }

    void WriteSummary(double setUpSeconds, double runSeconds) const
    {
        uint64_t transmitted = 0;
        uint64_t dropped = 0;
        uint64_t marked = 0;
        uint64_t delivered = 0;
        uint64_t completed = 0;
        uint64_t received = 0;
        for (const auto& device : m_devices)
        {
            transmitted += device->GetQueue()->GetTotalReceivedPackets();
            dropped += device->GetQueue()->GetTotalDroppedPackets();
        }
        for (const auto& disc : m_discs)
        {
            dropped += disc->GetStats().nTotalDroppedPackets;
            marked += disc->GetStats().nTotalMarkedPackets;
        }
        for (const auto& routing : m_hostRouting)
        {
            delivered += routing->GetDataPackets();
        }
        for (const auto& flow : m_flows)
        {
            completed += !flow.completed.IsNegative();
            received += flow.received;
        }
        std::cout << std::setprecision(9) << "{\"flows\": " << m_flows.size() << ", \"completed\": " << completed
                  << ", \"received_bytes\": " << received << ", \"data_packets_delivered\": " << delivered << ", \"packet_hops\": " << transmitted
                  << ", \"packets_marked\": " << marked << ", \"packets_dropped\": " << dropped
                  << ", \"events\": " << Simulator::GetEventCount() << ", \"set_up_cpu_s\": " << setUpSeconds
                  << ", \"run_cpu_s\": " << runSeconds << "}" << std::endl;
    }

  private:
    void SetDefaults() const
    {
        const bool dctcp = m_settings.tcp == "dctcp";
        if (!dctcp && m_settings.tcp != "newreno")
        {
            Fail("tcp is dctcp or newreno: " + m_settings.tcp);
        }
        const TypeId variant = dctcp ? TcpDctcp::GetTypeId() : TcpNewReno::GetTypeId();
        Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(variant));
        Config::SetDefault("ns3::TcpL4Protocol::RecoveryType", TypeIdValue(TcpClassicRecovery::GetTypeId()));
        Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(m_settings.segment));
        Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(m_settings.window));
        Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(m_settings.window));
        Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(m_settings.initialWindow));
        Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
        Config::SetDefault("ns3::TcpSocket::TcpNoDelay", BooleanValue(true));
        Config::SetDefault("ns3::TcpSocket::ConnTimeout", TimeValue(m_settings.initialRto));
        Config::SetDefault("ns3::RttEstimator::InitialEstimation", TimeValue(m_settings.initialRto));
        Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(m_settings.minimumRto));
        Config::SetDefault("ns3::TcpSocketBase::ClockGranularity", TimeValue(m_settings.timerGranularity));
        Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(false));
        Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
        Config::SetDefault("ns3::TcpSocketBase::LimitedTransmit", BooleanValue(false));
    }

    /// Returns the routing of a new node.
    Ptr<EcmpRouting> AddNode(Ptr<Node> node) const
    {
        auto routing = CreateObject<EcmpRouting>(m_settings.leaves * m_settings.hosts);
        node->GetObject<Ipv4>()->SetRoutingProtocol(routing);
        return routing;
    }

    /// Gives a device an interface of IP. The queue discipline of switches marks or drops; hosts have a long queue.
    uint32_t AddInterface(Ptr<NetDevice> device, Ipv4Address address, TrafficControlHelper* discipline)
    {
        auto ipv4 = device->GetNode()->GetObject<Ipv4>();
        const uint32_t interface = ipv4->AddInterface(device);
        ipv4->AddAddress(interface, Ipv4InterfaceAddress(address, Ipv4Mask::GetOnes()));
        ipv4->SetUp(interface);
        m_devices.push_back(device->GetObject<PointToPointNetDevice>());
        if (discipline)
        {
            m_discs.push_back(discipline->Install(device).Get(0));
        }
        return interface;
    }

    void Build()
    {
        const uint32_t hosts = m_settings.leaves * m_settings.hosts;
        NodeContainer hostNodes(hosts);
        NodeContainer leafNodes(m_settings.leaves);
        NodeContainer spineNodes(m_settings.spines);
        InternetStackHelper stack;
        stack.SetIpv6StackInstall(false);
        stack.SetRoutingHelper(Ipv4StaticRoutingHelper());
        stack.Install(hostNodes);
        stack.Install(leafNodes);
        stack.Install(spineNodes);

        // Queues are measured in bytes, so that an acknowledgement counts less than a full packet.
        const uint32_t packetBytes = m_settings.segment + IP_AND_TCP_HEADERS;
        const QueueSize buffer(QueueSizeUnit::BYTES, m_settings.buffer * packetBytes);
        const double threshold = double(m_settings.mark) * packetBytes;
        TrafficControlHelper discipline;
        if (m_settings.tcp == "dctcp")
        {
            // With two equal thresholds, every packet that finds at least as many bytes is marked, as DCTCP asks. The
            // device holds one packet more.
            discipline.SetRootQueueDisc("ns3::RedQueueDisc",
                                        "UseEcn",
                                        BooleanValue(true),
                                        "UseHardDrop",
                                        BooleanValue(false),
                                        "Gentle",
                                        BooleanValue(false),
                                        "QW",
                                        DoubleValue(1),
                                        "MinTh",
                                        DoubleValue(threshold),
                                        "MaxTh",
                                        DoubleValue(threshold),
                                        "MaxSize",
                                        QueueSizeValue(buffer),
                                        "LinkBandwidth",
                                        StringValue(m_settings.hostRate));
        }
        else
        {
            discipline.SetRootQueueDisc("ns3::FifoQueueDisc", "MaxSize", QueueSizeValue(buffer));
        }

        PointToPointHelper hostLinks;
        hostLinks.SetDeviceAttribute("DataRate", StringValue(m_settings.hostRate));
        hostLinks.SetChannelAttribute("Delay", TimeValue(m_settings.hostDelay));
        PointToPointHelper uplinks;
        uplinks.SetDeviceAttribute("DataRate", StringValue(m_settings.uplinkRate));
        uplinks.SetChannelAttribute("Delay", TimeValue(m_settings.uplinkDelay));
        // Packets wait in the discipline of a switch, not in its device.
        uplinks.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue("1p"));

        std::vector<Ptr<EcmpRouting>> spines;
        for (uint32_t s = 0; s < m_settings.spines; ++s)
        {
            spines.push_back(AddNode(spineNodes.Get(s)));
        }
        for (uint32_t l = 0; l < m_settings.leaves; ++l)
        {
            const Ptr<Node> leafNode = leafNodes.Get(l);
            const auto leaf = AddNode(leafNode);
            for (uint32_t s = 0; s < m_settings.spines; ++s)
            {
                const NetDeviceContainer ends = uplinks.Install(leafNode, spineNodes.Get(s));
                leaf->AddDefaultRoute(AddInterface(ends.Get(0), Ipv4Address(SWITCH_ADDRESS), &discipline));
                const uint32_t down = AddInterface(ends.Get(1), Ipv4Address(SWITCH_ADDRESS), &discipline);
                for (uint32_t h = 1; h <= m_settings.hosts; ++h)
                {
                    spines[s]->AddRoute(l * m_settings.hosts + h, down);
                }
            }
            for (uint32_t h = 1; h <= m_settings.hosts; ++h)
            {
                const uint32_t number = l * m_settings.hosts + h;
                const Ptr<Node> hostNode = hostNodes.Get(number - 1);
                const auto routing = AddNode(hostNode);
                hostLinks.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue("1p"));
                const NetDeviceContainer ends = hostLinks.Install(leafNode, hostNode);
                ends.Get(1)->GetObject<PointToPointNetDevice>()->GetQueue()->SetMaxSize(QueueSize("1000000p"));
                leaf->AddRoute(number, AddInterface(ends.Get(0), Ipv4Address(SWITCH_ADDRESS), &discipline));
                routing->SetLocalHost(number);
                routing->AddDefaultRoute(AddInterface(ends.Get(1), AddressOfHost(number), nullptr));
                m_hostRouting.push_back(routing);
                Listen(hostNode, number);
            }
        }
        for (uint32_t h = 0; h < hosts; ++h)
        {
            m_hosts.push_back(hostNodes.Get(h));
        }
    }

    void Listen(Ptr<Node> node, uint32_t host)
    {
        Ptr<Socket> socket = Socket::CreateSocket(node, TcpSocketFactory::GetTypeId());
        socket->Bind(InetSocketAddress(AddressOfHost(host), SERVER_PORT));
        socket->Listen();
        // Closes accepted connections as soon as the sender does.
        socket->ShutdownSend();
        socket->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(),
                                  MakeCallback(&Network::Accept, this));
    }

    /// Returns the key of a flow at its receiver: the address and port of its sender, and the receiver.
    static uint64_t Key(uint32_t source, uint16_t port, uint32_t destination)
    {
        return uint64_t(source) << 48 | uint64_t(destination) << 16 | port;
    }

    /// Returns the next port of a flow's source with which the switches select its spines.
    uint16_t SelectPort(const Flow& flow)
    {
        const uint32_t source = AddressOfHost(flow.source).Get();
        const uint32_t destination = AddressOfHost(flow.destination).Get();
        for (;;)
        {
            uint16_t& next = m_nextPort[flow.source];
            if (next == UINT16_MAX)
            {
                Fail("host " + std::to_string(flow.source) + " has no ports left");
            }
            const uint16_t port = next++;
            const uint32_t forth = SelectPath(source, destination, port, SERVER_PORT, m_settings.spines);
            const uint32_t back = SelectPath(destination, source, SERVER_PORT, port, m_settings.spines);
            if ((flow.spine == 0 || forth + 1 == flow.spine) && (flow.ackSpine == 0 || back + 1 == flow.ackSpine))
            {
                return port;
            }
        }
    }

    void StartFlow(std::size_t index)
    {
        Flow& flow = m_flows[index];
        if (index + 1 < m_flows.size())
        {
            Simulator::Schedule(m_flows[index + 1].start - flow.start, &Network::StartFlow, this, index + 1);
        }
        const uint16_t port = SelectPort(flow);
        m_open[Key(flow.source, port, flow.destination)] = index;
        flow.unsent = flow.bytes;
        Ptr<Socket> socket = Socket::CreateSocket(m_hosts[flow.source - 1], TcpSocketFactory::GetTypeId());
        socket->Bind(InetSocketAddress(AddressOfHost(flow.source), port));
        socket->SetConnectCallback(MakeCallback(&Network::Connected, this).Bind(index),
                                   MakeNullCallback<void, Ptr<Socket>>());
        socket->Connect(InetSocketAddress(AddressOfHost(flow.destination), SERVER_PORT));
    }

    void Connected(std::size_t index, Ptr<Socket> socket)
    {
        m_flows[index].connected = Simulator::Now();
        socket->SetSendCallback(MakeCallback(&Network::Send, this).Bind(index));
        Send(index, socket, socket->GetTxAvailable());
    }

    /// Fills the send buffer with full segments. Closes the connection after the last one.
    void Send(std::size_t index, Ptr<Socket> socket, uint32_t)
    {
        Flow& flow = m_flows[index];
        if (flow.unsent == 0)
        {
            if (socket->GetTxAvailable() == m_settings.window)
            {
                flow.acknowledged = Simulator::Now();
                socket->SetSendCallback(MakeNullCallback<void, Ptr<Socket>, uint32_t>());
            }
            return;
        }
        while (flow.unsent > 0)
        {
            const uint32_t size = std::min<uint64_t>(flow.unsent, m_settings.segment);
            if (socket->GetTxAvailable() < size)
            {
                return;
            }
            if (socket->Send(Create<Packet>(size)) != int(size))
            {
                Fail("a socket refused data");
            }
            flow.unsent -= size;
        }
        socket->Close();
    }

    void Accept(Ptr<Socket> socket, const Address& peer)
    {
        const auto from = InetSocketAddress::ConvertFrom(peer);
        Address local;
        socket->GetSockName(local);
        const uint32_t source = from.GetIpv4().Get() - HOST_ADDRESSES;
        const uint32_t destination = InetSocketAddress::ConvertFrom(local).GetIpv4().Get() - HOST_ADDRESSES;
        const auto found = m_open.find(Key(source, from.GetPort(), destination));
        if (found == m_open.end())
        {
            Fail("a connection of no flow");
        }
        socket->SetRecvCallback(MakeCallback(&Network::Receive, this).Bind(found->second));
        m_open.erase(found);
    }

    void Receive(std::size_t index, Ptr<Socket> socket)
    {
        Flow& flow = m_flows[index];
        while (Ptr<Packet> packet = socket->Recv())
        {
            if (packet->GetSize() == 0)
            {
                return;
            }
            flow.received += packet->GetSize();
        }
        if (flow.received == flow.bytes && flow.completed.IsNegative())
        {
            flow.completed = Simulator::Now();
        }
    }

    const Settings& m_settings;
    std::vector<Flow>& m_flows;
    std::vector<Ptr<Node>> m_hosts;
    std::vector<Ptr<EcmpRouting>> m_hostRouting;
    std::vector<Ptr<PointToPointNetDevice>> m_devices;
    std::vector<Ptr<QueueDisc>> m_discs;
    /// Next ports by host.
    std::vector<uint16_t> m_nextPort;
    /// Flows whose connection was not accepted yet.
    std::unordered_map<uint64_t, std::size_t> m_open;
};

/// Returns the CPU time of this process in user mode, in seconds.
double
UserSeconds()
{
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_utime.tv_sec + usage.ru_utime.tv_usec * 1e-6;
}

void
WriteCompletions(const std::string& path, const std::vector<Flow>& flows)
{
    std::ofstream file(path);
    file << "start_s,source,destination,bytes,connected_s,completed_s,acknowledged_s\n" << std::fixed
         << std::setprecision(9);
    for (const auto& flow : flows)
    {
        file << flow.startText << ',' << flow.source << ',' << flow.destination << ',' << flow.bytes;
        for (const Time& time : {flow.connected, flow.completed, flow.acknowledged})
        {
            file << ',';
            if (!time.IsNegative())
            {
                file << time.GetSeconds();
            }
        }
        file << '\n';
    }
    if (!file.flush())
    {
        Fail("cannot write " + path);
    }
}

} // namespace

int
main(int argc, char* argv[])
{
    Settings settings;
    CommandLine command;
    command.AddValue("flows", "CSV file of the flows", settings.flows);
    command.AddValue("completions", "CSV file to write the times of the flows to", settings.completions);
    command.AddValue("tcp", "dctcp (with marks) or newreno (without)", settings.tcp);
    command.AddValue("leaves", "number of leaf switches", settings.leaves);
    command.AddValue("hosts", "number of hosts at each leaf switch", settings.hosts);
    command.AddValue("spines", "number of spine switches", settings.spines);
    command.AddValue("hostRate", "rate of links between host and leaf", settings.hostRate);
    command.AddValue("uplinkRate", "rate of links between leaf and spine", settings.uplinkRate);
    command.AddValue("hostDelay", "delay of links between host and leaf", settings.hostDelay);
    command.AddValue("uplinkDelay", "delay of links between leaf and spine", settings.uplinkDelay);
    command.AddValue("segment", "bytes of data in a segment", settings.segment);
    command.AddValue("window", "receive window and send buffer in bytes", settings.window);
    command.AddValue("initialWindow", "initial congestion window in segments", settings.initialWindow);
    command.AddValue("minimumRto", "smallest retransmission timeout", settings.minimumRto);
    command.AddValue("initialRto", "retransmission timeout before the first sample", settings.initialRto);
    command.AddValue("timerGranularity", "clock granularity of the timer", settings.timerGranularity);
    command.AddValue("buffer", "full packets that a port of a switch holds", settings.buffer);
    command.AddValue("mark", "full packets in a port of a switch from which on packets are marked", settings.mark);
    command.AddValue("duration", "simulated time", settings.duration);
    command.Parse(argc, argv);

    std::vector<Flow> flows = ReadFlows(settings);
    Network network(settings, flows);
    Simulator::Stop(settings.duration);
    const double before = UserSeconds();
    Simulator::Run();
    const double after = UserSeconds();
    if (!settings.completions.empty())
    {
        WriteCompletions(settings.completions, flows);
    }
    network.WriteSummary(before, after - before);
    Simulator::Destroy();
    return 0;
}
