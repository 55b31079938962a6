package waybill;

import java.util.Set;
import org.elasticsearch.cluster.metadata.DataStream;
import org.elasticsearch.features.FeatureSpecification;
import org.elasticsearch.features.NodeFeature;

/** Declared by the module of data streams, which is not published; the code behind it is in the server. */
public class DeclaredFeatures implements FeatureSpecification {
    @Override
    public Set<NodeFeature> getFeatures() {
        return Set.of(DataStream.DATA_STREAM_FAILURE_STORE_FEATURE);
    }
}
