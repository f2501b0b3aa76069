// Drops of CoDel, FQ-CoDel and PIE in ns-3 3.37 (Debian's libns3-dev), for `python/tests/test_ns3_queues.py`:
//
//     g++ -std=c++17 -o queue_discs peers/queue_discs_ns3.cc -lns3-traffic-control -lns3-network -lns3-core
//     for disc in codel fq_codel pie; do ./queue_discs $disc; done > python/tests/data/ns3_queues.csv
//
// Packets of 1,500 bytes arrive every 1.000003 ms, and the link needs 1.250007 ms for each, so that no two events are
// simultaneous. With FQ-CoDel, packets belong to three flows in the pattern 0 0 1 0 0 2. The program writes the numbers
// of the dropped packets in the order of the drops and, for PIE, the random numbers that PIE has used.

#include "ns3/address.h"
#include "ns3/boolean.h"
#include "ns3/fq-codel-queue-disc.h"
#include "ns3/nstime.h"
#include "ns3/object-factory.h"
#include "ns3/packet.h"
#include "ns3/pie-queue-disc.h"
#include "ns3/queue-disc.h"
#include "ns3/queue-size.h"
#include "ns3/random-variable-stream.h"
#include "ns3/simulator.h"
#include "ns3/uinteger.h"

#include <iomanip>
#include <iostream>
#include <string>

using namespace ns3;

namespace
{

constexpr uint32_t PATTERN[] = {0, 0, 1, 0, 0, 2};
constexpr uint32_t ARRIVALS = 1000;
constexpr uint32_t SIZE = 1500;
constexpr int64_t INTERVAL_NS = 1000003;
constexpr int64_t SERVICE_NS = 1250007;

/// A packet with its number and flow.
class Numbered : public QueueDiscItem
{
  public:
    explicit Numbered(uint32_t number)
        : QueueDiscItem(Create<Packet>(SIZE), Address(), 0),
          m_number(number)
    {
    }

    void AddHeader() override
    {
    }

    bool Mark() override
    {
        return false;
    }

    uint32_t Hash(uint32_t) const override
    {
        return PATTERN[m_number % 6];
    }

    const uint32_t m_number;
};

void
Dropped(const std::string& disc, Ptr<const QueueDiscItem> item)
{
    std::cout << disc << ",dropped," << dynamic_cast<const Numbered&>(*item).m_number << "\n";
}

/// The link, which takes packets from the queue discipline.
struct Link
{
    Ptr<QueueDisc> queue;
    bool isBusy = false;

    void Arrive(uint32_t number)
    {
        queue->Enqueue(Create<Numbered>(number));
        if (!isBusy)
        {
            Serve();
        }
    }

    void Serve()
    {
        isBusy = queue->Dequeue() != nullptr;
        if (isBusy)
        {
            Simulator::Schedule(NanoSeconds(SERVICE_NS), &Link::Serve, this);
        }
    }
};

} // namespace

int
main(int argc, char** argv)
{
    const std::string disc = argc == 2 ? argv[1] : "";
    if (disc != "codel" && disc != "fq_codel" && disc != "pie")
    {
        std::cerr << "the argument must be codel, fq_codel or pie" << std::endl;
        return 2;
    }
    Link link;

    ObjectFactory factory;
    const QueueSizeValue room(QueueSize(QueueSizeUnit::BYTES, ARRIVALS * SIZE));
    if (disc == "codel")
    {
        factory.SetTypeId("ns3::CoDelQueueDisc");
        factory.Set("MaxSize", room);
    }
    else if (disc == "fq_codel")
    {
        factory.SetTypeId("ns3::FqCoDelQueueDisc");
        factory.Set("MaxSize", QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, ARRIVALS)));
        factory.Set("Flows", UintegerValue(3));
    }
    else
    {
        factory.SetTypeId("ns3::PieQueueDisc");
        factory.Set("MaxSize", room);
        // A packet has the mean size, so the probability does not depend on the size. ns-3 renews the burst allowance
        // by other rules than RFC 8033, section 4.4.
        factory.Set("MeanPktSize", UintegerValue(SIZE));
        factory.Set("MaxBurstAllowance", TimeValue(Time(0)));
        factory.Set("UseCapDropAdjustment", BooleanValue(false));
    }
    link.queue = factory.Create<QueueDisc>();
    if (disc == "pie")
    {
        DynamicCast<PieQueueDisc>(link.queue)->AssignStreams(1);
    }
    if (disc == "fq_codel")
    {
        // Otherwise, the quantum is the MTU of a device.
        DynamicCast<FqCoDelQueueDisc>(link.queue)->SetQuantum(1514);
    }
    link.queue->Initialize();
    link.queue->TraceConnectWithoutContext("Drop", MakeBoundCallback(&Dropped, disc));
    for (uint32_t i = 0; i < ARRIVALS; ++i)
    {
        Simulator::Schedule(NanoSeconds(INTERVAL_NS * i), &Link::Arrive, &link, i);
    }
    Simulator::Stop(NanoSeconds(INTERVAL_NS * ARRIVALS));
    Simulator::Run();
    if (disc == "pie")
    {
        const auto draws = CreateObject<UniformRandomVariable>();
        draws->SetStream(1);
        std::cout << std::setprecision(17);
        for (uint32_t i = 0; i < ARRIVALS; ++i)
        {
            std::cout << disc << ",draw," << draws->GetValue() << "\n";
        }
    }
    Simulator::Destroy();
    return 0;
}
